// Events of a log: sending, recalling, paging back.
import type { ContentTypeName } from '../domain/content-types.js';
import { history, recall, send, type RecallAnswer, type SendAnswer } from '../domain/messages.js';
import { badge as loadBadge } from '../domain/unread.js';
import type { LogEvent, PersonViewer } from '../model.js';
import { requirePerson } from '../domain/access.js';
import { builder, priced } from './builder.js';
import { connectionOf, toConnection } from './connections.js';
import { contentType } from './content-types.js';
import { viewerOf, type Context } from './context.js';
import { conv, convOf } from './conversations.js';
import { badge } from './unread.js';
import { selectsOnly } from './selection.js';
import { user } from './users.js';

export const eventKind = builder.enumType('EventKind', {
  description: '`contentType` says the rest.',
  values: {
    MESSAGE: { description: 'somebody said something' },
    MEMBERSHIP: { description: 'somebody came or went' },
    RECALL: { description: 'a message was taken back; `target` is that one' },
    NOTICE: { description: 'not built yet' },
    CALL: { description: 'not built yet' },
  },
});
const eventVia = builder.enumType('EventVia', {
  values: {
    DEVICE: { description: 'one of the sender’s devices' },
    SERVICE: { description: 'the application’s server' },
    USER: { description: 'the sender, without a device' },
  },
});

const person = (context: Context): PersonViewer => requirePerson(viewerOf(context));

const quote = builder.objectRef<{ seq: number; event: LogEvent | null }>('Quote').implement({
  description:
    'A reference to an earlier event, as the viewer may see it: only the seq when it is recalled, removed or hidden from them.',
  fields: (t) => ({
    seq: t.expose('seq', { type: 'Seq' }),
    contentType: t.field({
      type: contentType,
      nullable: true,
      resolve: ({ event }) => (event?.content ? (event.contentType as ContentTypeName) : null),
    }),
    sender: t.field({
      type: user,
      nullable: true,
      resolve: ({ event }, _, { deps }) =>
        event?.content && event.sender !== null ? deps.loads.user(event.sender) : null,
    }),
    content: t.field({ type: 'JSON', nullable: true, resolve: ({ event }) => event?.content ?? null }),
  }),
});

export const event = builder.objectRef<LogEvent>('Event');
event.implement({
  description: 'One entry of a conversation’s log. A recalled one keeps its place and has no content.',
  fields: (t) => ({
    id: t.id({ description: '`<conv>:<seq>`', resolve: (e) => `${e.conv}:${String(e.seq)}` }),
    conv: t.exposeID('conv', { description: 'the conversation’s id' }),
    seq: t.expose('seq', { type: 'Seq' }),
    kind: t.expose('kind', { type: eventKind }),
    contentType: t.field({ type: contentType, resolve: (e) => e.contentType as ContentTypeName }),
    sender: t.field({
      type: user,
      nullable: true,
      description: 'null: the service',
      resolve: ({ sender }, _, { deps }, info) => {
        if (sender === null) return null;
        return selectsOnly(info, ['id']) ? { id: sender, name: null, avatarUrl: null } : deps.loads.user(sender);
      },
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'server time; order is by seq, never by time' }),
    clientId: t.string({
      nullable: true,
      description: 'only to the sender: matches what a device shows before the answer is there',
      resolve: (e, _, context) => (e.sender === person(context).user ? e.clientId : null),
    }),
    recalled: t.exposeBoolean('recalled'),
    recalledBy: t.expose('recalledBy', {
      type: 'Seq',
      nullable: true,
      description: 'seq of the recall event, if the viewer may see it',
    }),
    target: t.field({
      type: event,
      nullable: true,
      description: 'of a recall: the recalled event; null to those who could not see it',
      resolve: ({ conv: id, target }, _, context) =>
        target === null ? null : context.deps.loads.event({ user: person(context).user, conv: id, seq: target }),
    }),
    via: t.expose('via', { type: eventVia }),
    quote: t.field({
      type: quote,
      nullable: true,
      resolve: async ({ conv: id, quote: seq }, _, context) =>
        seq === null
          ? null
          : { seq, event: await context.deps.loads.event({ user: person(context).user, conv: id, seq }) },
    }),
    mentions: t.idList({ description: 'user ids, at most 50', resolve: (e) => [...e.mentions] }),
    content: t.field({
      type: 'JSON',
      nullable: true,
      resolve: (e) => e.content,
      description: 'see ContentType; null once recalled',
    }),
    text: t.string({
      nullable: true,
      description: 'of a TEXT',
      resolve: ({ content }) => (typeof content?.['text'] === 'string' ? content['text'] : null),
    }),
  }),
});
builder.objectField(conv, 'lastEvent', (t) =>
  t.field({
    type: event,
    nullable: true,
    description: 'the event at head',
    resolve: ({ id, head }, _, context) =>
      head === 0 ? null : context.deps.loads.event({ user: person(context).user, conv: id, seq: head }),
  }),
);

const eventConnection = connectionOf<LogEvent>(
  'Event',
  event,
  'A page of a log, ascending. A cursor is the event’s seq in decimal, for ever.',
);

builder.queryField('history', (t) =>
  t.field({
    type: eventConnection,
    description: 'Pages a log, backwards with last/before or forwards with first/after; stable while the log grows.',
    args: {
      conv: t.arg.id({ required: true }),
      last: t.arg.int({ description: '1 to 200, default 50' }),
      before: t.arg.string({ description: 'a cursor: events older than it' }),
      first: t.arg.int({ description: '1 to 200; not together with last' }),
      after: t.arg.string({ description: 'a cursor: events newer than it' }),
    },
    complexity: ({ first, last }) => priced(first ?? last, 50),
    resolve: async (_, args, context) =>
      toConnection(await history(context.deps, viewerOf(context), args), ({ seq }) => String(seq)),
  }),
);

const sendInput = builder.inputType('SendInput', {
  fields: (t) => ({
    conv: t.id({ required: true }),
    clientId: t.string({
      required: true,
      description:
        'made by the client, 1 to 64 characters, unique per sender for ever. Retry with the same one until there is an answer.',
    }),
    contentType: t.field({ type: contentType, required: true }),
    content: t.field({
      type: 'JSON',
      required: true,
      description:
        'of the type’s shape; unknown keys are refused; at most 8 KiB of JSON, a TEXT at most 4,096 characters',
    }),
    quote: t.field({ type: 'Seq', description: 'an earlier message that the sender sees' }),
    mentions: t.idList({ description: 'at most 50' }),
    markReadUpTo: t.field({
      type: 'Seq',
      description: 'also marks read, in the same transaction; above head refuses the whole send',
    }),
  }),
});

const sendPayload = builder.objectRef<SendAnswer>('SendPayload').implement({
  fields: (t) => ({
    event: t.expose('event', { type: event }),
    duplicate: t.exposeBoolean('duplicate', { description: 'the same was sent before: this is the first event' }),
    conv: t.field({ type: conv, resolve: (answer, _, context) => convOf(answer, context) }),
    badge: t.field({ type: badge, resolve: (_, __, context) => loadBadge(context.deps, viewerOf(context)) }),
  }),
});
const recallPayload = builder.objectRef<RecallAnswer>('RecallPayload').implement({
  fields: (t) => ({
    event: t.expose('event', { type: event, description: 'the recall event' }),
    target: t.expose('target', { type: event, description: 'the recalled event' }),
    conv: t.field({ type: conv, resolve: (answer, _, context) => convOf(answer, context) }),
    badge: t.field({ type: badge, resolve: (_, __, context) => loadBadge(context.deps, viewerOf(context)) }),
  }),
});

builder.mutationFields((t) => ({
  send: t.field({
    type: sendPayload,
    nullable: true,
    description:
      'Appends a message. NOT_MEMBER unless the viewer is a member now; IDEMPOTENCY_CONFLICT when the clientId was used for something else; CURSOR_AHEAD.',
    args: { input: t.arg({ type: sendInput, required: true }) },
    resolve: (_, { input }, context) => send(context.deps, viewerOf(context), input),
  }),
  recall: t.field({
    type: recallPayload,
    nullable: true,
    description:
      'Takes a message back for everyone: the sender within the recall window (5 minutes unless configured), the owner and admins at any time, else NOT_RECALLABLE. A repeat answers with the same recall event.',
    args: { conv: t.arg.id({ required: true }), seq: t.arg({ type: 'Seq', required: true }) },
    resolve: (_, args, context) => recall(context.deps, viewerOf(context), args),
  }),
}));
