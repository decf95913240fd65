// Live hints: `message`, `readChanged`, and `hints` for both and the rest.
import type { GraphQLResolveInfo } from 'graphql';
import type { ContentTypeName } from '../domain/content-types.js';
import {
  subscribe,
  type HintItem,
  type HintStream,
  type Selected,
  type SentItem,
  type Subscription,
} from '../domain/hints.js';
import type { Conv, Hint, Resync } from '../model.js';
import { builder, requireAffordable } from './builder.js';
import { viewerOf, type Context } from './context.js';
import { conv, conversationType } from './conversations.js';
import { changeHint } from './changes.js';
import { contentType } from './content-types.js';
import { event, eventKind } from './messages.js';
import { selectionOn, selectsOnly } from './selection.js';
import { signalHint } from './signals.js';
import { user } from './users.js';

const resyncReason = builder.enumType('ResyncReason', {
  description: 'Why everything must be looked at again.',
  values: {
    START: { description: 'the subscription is live from here on' },
    BUS: { description: 'hints between the servers may have been lost' },
    OVERFLOW: { description: 'this client was too slow' },
    MODE: {
      description:
        'from now on hints of another conversation come too: it has grown large, or the viewer came into a large one',
    },
    RESTORED: {
      description:
        'the database was restored from a backup: positions and numbers may be lower than before; sync says what to drop',
    },
    VERSION: { description: 'a server of another release said something unknown' },
  },
});

/** What `message` and `readChanged` send. */
type LogItem = HintItem | Resync;
const isResync = (item: SentItem): item is Resync => 'kind' in item;
/** A field that is null on a resync. */
const unlessResync =
  <T>(read: (item: HintItem) => T) =>
  (item: LogItem): T | null =>
    isResync(item) ? null : read(item);
const messageOf = ({ hint }: HintItem) => (hint.kind === 'message' ? hint : null);
const readOf = ({ hint }: HintItem) => (hint.kind === 'read' ? hint : null);

const resyncOf = (item: LogItem) => (isResync(item) ? item.reason : null);
const conversationTypeOf = (item: LogItem) => (isResync(item) ? ('NONE' as const) : item.hint.conversationType);
const contentTypeOf = unlessResync(({ hint }) =>
  hint.kind === 'read' ? 'READ' : (hint.contentType as ContentTypeName),
);
// what was selected of it is there: domain/hints.ts has loaded it
const convOf = unlessResync((item) => item.conv as Conv);
const originDeviceOf = unlessResync(({ hint }) => hint.originDevice);

const about = {
  resync: 'why to query again; then every other field is null',
  conv: 'as it is when this is sent',
  originDevice: 'which of the viewer’s own devices did it; that one is told too. null when it was somebody else',
};

const messageHint = builder.objectRef<LogItem>('MessageHint').implement({
  description: 'The log of a conversation rose. `seq` may jump: fetch whenever it is not the local cursor + 1.',
  fields: (t) => ({
    resync: t.field({ type: resyncReason, nullable: true, description: about.resync, resolve: resyncOf }),
    conversationType: t.field({ type: conversationType, resolve: conversationTypeOf }),
    contentType: t.field({ type: contentType, nullable: true, resolve: contentTypeOf }),
    kind: t.field({
      type: eventKind,
      nullable: true,
      resolve: unlessResync((item) => messageOf(item)?.eventKind ?? null),
    }),
    conv: t.field({ type: conv, nullable: true, description: about.conv, resolve: convOf }),
    seq: t.field({ type: 'Seq', nullable: true, resolve: unlessResync((item) => messageOf(item)?.seq ?? null) }),
    head: t.field({ type: 'Seq', nullable: true, resolve: unlessResync((item) => messageOf(item)?.head ?? null) }),
    sender: t.field({
      type: user,
      nullable: true,
      resolve: (item, _, { deps }, info) => {
        const sender = isResync(item) ? null : messageOf(item)?.sender;
        if (sender == null) return null;
        return selectsOnly(info, ['id']) ? { id: sender, name: null, avatarUrl: null } : deps.loads.user(sender);
      },
    }),
    event: t.field({
      type: event,
      nullable: true,
      description: 'the event, if the viewer may see it',
      resolve: unlessResync((item) => item.event),
    }),
    target: t.field({
      type: event,
      nullable: true,
      description: 'of a recall: the recalled event, without content',
      resolve: unlessResync((item) => item.target),
    }),
    originDevice: t.id({ nullable: true, description: about.originDevice, resolve: originDeviceOf }),
  }),
});

const readHint = builder.objectRef<LogItem>('ReadHint').implement({
  description: 'The user’s own read position rose, on one of the user’s devices.',
  fields: (t) => ({
    resync: t.field({ type: resyncReason, nullable: true, description: about.resync, resolve: resyncOf }),
    conversationType: t.field({ type: conversationType, resolve: conversationTypeOf }),
    contentType: t.field({ type: contentType, nullable: true, resolve: contentTypeOf }),
    conv: t.field({ type: conv, nullable: true, description: about.conv, resolve: convOf }),
    read: t.field({ type: 'Seq', nullable: true, resolve: unlessResync((item) => readOf(item)?.read ?? null) }),
    unread: t.int({ nullable: true, resolve: unlessResync((item) => readOf(item)?.unread ?? null) }),
    head: t.field({
      type: 'Seq',
      nullable: true,
      description: 'the head that unread was computed at',
      resolve: unlessResync((item) => readOf(item)?.head ?? null),
    }),
    originDevice: t.id({ nullable: true, description: about.originDevice, resolve: originDeviceOf }),
  }),
});

const convHint = builder.objectRef<HintItem>('ConvHint').implement({
  description: 'Something else of a conversation changed for the viewer: a new one, settings.',
  fields: (t) => ({
    conversationType: t.field({ type: conversationType, resolve: conversationTypeOf }),
    contentType: t.field({ type: contentType, nullable: true, resolve: contentTypeOf }),
    conv: t.field({ type: conv, nullable: true, description: about.conv, resolve: convOf }),
    originDevice: t.id({ nullable: true, description: about.originDevice, resolve: originDeviceOf }),
  }),
});

const resync = builder.objectRef<Resync>('Resync').implement({
  description: 'Hints may have been lost, or the subscription has just begun: query again.',
  fields: (t) => ({ reason: t.expose('reason', { type: resyncReason }) }),
});

const typeNames = {
  message: 'MessageHint',
  read: 'ReadHint',
  conv: 'ConvHint',
  change: 'ChangeHint',
  signal: 'Signal',
} as const;

const hint = builder.unionType('Hint', {
  description: 'Everything that a device is told.',
  types: [resync, messageHint, readHint, convHint, changeHint, signalHint],
  resolveType: (item) => {
    const sent = item;
    return isResync(sent) ? 'Resync' : typeNames[sent.hint.kind];
  },
});

/** What the operation selects on each type of hint. */
function selectedBy(info: GraphQLResolveInfo): Subscription['selected'] {
  const on = (type: string): Selected => {
    const selection = selectionOn(info, [type, 'Hint']);
    return { conv: selection.get('conv') ?? new Set(), event: selection.has('event'), target: selection.has('target') };
  };
  return { message: on(typeNames.message), read: on(typeNames.read), conv: on(typeNames.conv) };
}

function listen(context: Context, info: GraphQLResolveInfo, accepts: (item: Hint) => boolean): Promise<HintStream> {
  requireAffordable(context, info);
  const options = { field: info.fieldName, accepts, selected: selectedBy(info) };
  return subscribe(context.deps, viewerOf(context), context.connection, options);
}

builder.subscriptionFields((t) => ({
  message: t.field({
    type: messageHint,
    description:
      'Every event of every conversation of the viewer: messages, recalls, members coming and going. First a resync.',
    subscribe: (_, __, context, info) => listen(context, info, ({ kind }) => kind === 'message'),
    resolve: (item) => item as LogItem,
  }),
  readChanged: t.field({
    type: readHint,
    description: 'The viewer’s own read positions, from whichever device. First a resync.',
    subscribe: (_, __, context, info) => listen(context, info, ({ kind }) => kind === 'read'),
    resolve: (item) => item as LogItem,
  }),
  hints: t.field({
    type: hint,
    description: 'Everything in one stream. First a resync.',
    subscribe: (_, __, context, info) => listen(context, info, () => true),
    resolve: (item) => item,
  }),
}));
