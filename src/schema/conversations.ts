// Conversations as the viewer sees them.
import { conv as loadConv, convs, createConv, setConvSettings, toConvCursor } from '../domain/conversations.js';
import { requirePerson } from '../domain/access.js';
import { requireConvId } from '../domain/input.js';
import type { ConvAnswer } from '../domain/scene.js';
import type { Conv, ConvId } from '../model.js';
import { builder, priced } from './builder.js';
import { connectionOf, toConnection, type ConnectionShape } from './connections.js';
import { viewerOf, type Context } from './context.js';
import { user } from './users.js';

export const convType = builder.enumType('ConvType', {
  values: {
    DIRECT: { description: 'two users, one conversation per pair' },
    GROUP: {},
    CHANNEL: { description: 'many readers, without a limit; only owner and admins write; always in PULL mode' },
  },
});
export const conversationType = builder.enumType('ConversationType', {
  description: 'Which kind of conversation a hint is about.',
  values: { NONE: { description: 'none' }, DIRECT: {}, GROUP: {}, CHANNEL: {} },
});
export const joinPolicy = builder.enumType('JoinPolicy', {
  values: {
    OPEN: { description: 'anyone may join' },
    APPROVAL: {
      description: 'owner and admins add and approve; others ask, and so do members who want to add somebody',
    },
    INVITE: { description: 'owner and admins add' },
  },
});
const deliveryMode = builder.enumType('DeliveryMode', {
  description: 'How hints travel between the servers. What a client is told is the same in both.',
  values: {
    PUSH: { description: 'to each member' },
    PULL: { description: 'once, to the conversation: large ones. Messages within a tenth of a second may be one hint' },
  },
});
export const role = builder.enumType('Role', {
  description: 'What a member of a group may do.',
  values: {
    OWNER: { description: 'adds, removes anyone, recalls; cannot leave' },
    ADMIN: { description: 'adds, removes members, recalls' },
    MEMBER: { description: 'sends, recalls own messages in time, leaves' },
  },
});

export const conv = builder.objectRef<Conv>('Conv').implement({
  description:
    'A conversation as the viewer sees it: reset the client’s cache at sign-out. head, read, delivered and unread are of one snapshot.',
  fields: (t) => ({
    id: t.exposeID('id'),
    type: t.expose('type', { type: convType }),
    title: t.exposeString('title', { nullable: true, description: 'a group’s name' }),
    peer: t.field({
      type: user,
      nullable: true,
      description: 'the other user of a DIRECT conversation',
      resolve: ({ peer }, _, { deps }) => (peer === null ? null : deps.loads.user(peer)),
    }),
    joinPolicy: t.expose('joinPolicy', { type: joinPolicy }),
    historyVisible: t.exposeBoolean('historyVisible', {
      description: 'whether those who join from now on see what was before; what they see of it is never unread',
    }),
    myRole: t.expose('role', { type: role, nullable: true, description: 'null for a former member' }),
    epoch: t.exposeInt('epoch', { description: 'the log’s incarnation; pass it to sync' }),
    head: t.expose('head', { type: 'Seq', description: 'the last seq; for a former member the last one they see' }),
    minSeq: t.expose('minSeq', { type: 'Seq', description: 'the smallest seq still kept' }),
    delivered: t.expose('delivered', { type: 'Seq', description: 'this device holds everything visible up to here' }),
    read: t.expose('read', { type: 'Seq', description: 'the user has read up to here, on whichever device' }),
    unread: t.exposeInt('unread', {
      description:
        'events that are visible, count as unread, were sent by others, are not recalled and lie above read. Exact, no cap.',
    }),
    mode: t.expose('mode', {
      type: deliveryMode,
      description: 'changes with the number of members; then open subscriptions get a resync MODE',
    }),
    joined: t.exposeBoolean('joined', { description: 'false for a former member, who keeps what they saw' }),
    muted: t.exposeBoolean('muted', { description: 'the viewer’s own setting' }),
    infoVersion: t.exposeInt('infoVersion', { description: 'rises when facts of the whole conversation change' }),
  }),
});

interface ConvsShape extends ConnectionShape<Conv> {
  readonly asOf: string;
}
const convConnection = connectionOf<Conv, ConvsShape>(
  'Conv',
  conv,
  'A page of conversations, all numbers of one snapshot.',
);
builder.objectField(convConnection, 'asOf', (t) =>
  t.exposeString('asOf', { description: 'names the moment that the page is of; opaque' }),
);

const convOrder = builder.enumType('ConvOrder', {
  values: {
    ACTIVITY: { description: 'newest first, by the viewer’s last visible event' },
    ID: { description: 'a stable walk over all of them' },
  },
});

builder.queryFields((t) => ({
  convs: t.field({
    type: convConnection,
    description:
      'The viewer’s conversations. What moves up while paging arrives as a hint; what does not is seen exactly once.',
    args: {
      first: t.arg.int({ description: '1 to 1,000, default 50' }),
      after: t.arg.string(),
      orderBy: t.arg({ type: convOrder, description: 'default ACTIVITY' }),
      unreadOnly: t.arg.boolean({ description: 'only those with unread > 0' }),
      lagging: t.arg.boolean({
        description: 'only those where this device’s delivered < head: the first query after a reconnect',
      }),
      includeLeft: t.arg.boolean({ description: 'also those that the viewer has left' }),
    },
    complexity: ({ first }) => priced(first, 50),
    resolve: async (_, args, context) => {
      const page = await convs(context.deps, viewerOf(context), args);
      return { ...toConnection(page, toConvCursor), asOf: page.asOf };
    },
  }),
  conv: t.field({
    type: conv,
    nullable: true,
    description: 'One conversation. null with NOT_MEMBER for a missing one and for one that the viewer never was in.',
    args: { id: t.arg.id({ required: true }) },
    resolve: (_, { id }, context) => loadConv(context.deps, requirePerson(viewerOf(context)), requireConvId(id)),
  }),
}));

/** The conversation of an answer, as it is after the commit. */
export const convOf = ({ conv: id }: { readonly conv: ConvId }, context: Context): Promise<Conv> =>
  loadConv(context.deps, viewerOf(context), id);

export const convPayload = builder.objectRef<ConvAnswer>('ConvPayload').implement({
  fields: (t) => ({
    conv: t.field({ type: conv, resolve: (answer, _, context) => convOf(answer, context) }),
    duplicate: t.exposeBoolean('duplicate', {
      description: 'it was there already: the same clientId, or the pair’s conversation',
    }),
  }),
});

const createConvInput = builder.inputType('CreateConvInput', {
  fields: (t) => ({
    clientId: t.string({
      required: true,
      description: 'made by the client, 1 to 64 characters; a repeat answers with the same conversation',
    }),
    type: t.field({ type: convType, required: true }),
    title: t.string({ description: 'groups: 1 to 64 characters' }),
    members: t.idList({ required: true, description: 'besides the creator; DIRECT: exactly one' }),
    owner: t.id({ description: 'required with the service key by itself, else refused' }),
    historyVisible: t.boolean({ description: 'default false' }),
    joinPolicy: t.field({ type: joinPolicy, description: 'default INVITE' }),
  }),
});

builder.mutationFields((t) => ({
  createConv: t.field({
    type: convPayload,
    nullable: true,
    description:
      'Makes a conversation; the creator is its owner. One DIRECT conversation per pair, whoever opens first. IDEMPOTENCY_CONFLICT when the clientId made another; BAD_USER_INPUT for an unknown user or more than 200 members; addMembers adds more.',
    args: { input: t.arg({ type: createConvInput, required: true }) },
    resolve: (_, { input }, context) => createConv(context.deps, viewerOf(context), input),
  }),
  setConvSettings: t.field({
    type: convPayload,
    nullable: true,
    description: 'The viewer’s own settings of a conversation.',
    args: {
      conv: t.arg.id({ required: true }),
      muted: t.arg.boolean({ required: true, description: 'count apart in the badge' }),
    },
    resolve: (_, args, context) => setConvSettings(context.deps, viewerOf(context), args),
  }),
}));
