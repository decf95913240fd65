// Marking and acknowledging many conversations at once.
import { ackMany, markAllRead, markReadMany } from '../domain/batches.js';
import type {
  AskedPosition,
  DeliveryBatch,
  DeliveryItem,
  ReadAllPage,
  ReadBatch,
  ReadItem,
} from '../domain/batches.js';
import type { ConvId } from '../model.js';
import { badge as loadBadge } from '../domain/unread.js';
import { builder, priced } from './builder.js';
import { viewerOf, type Context } from './context.js';
import { conv, convOf } from './conversations.js';
import { itemError } from './errors.js';
import { badge } from './unread.js';

const convOfItem = ({ conv: id }: { readonly conv: ConvId | null }, context: Context) =>
  id === null ? null : convOf({ conv: id }, context);
const headNote = 'also of an item that is CURSOR_AHEAD';

const readItem = builder.objectRef<ReadItem>('ReadItem').implement({
  description: 'One conversation’s merged read position. An item fails alone: then conv is null and error says why.',
  fields: (t) => ({
    conv: t.field({ type: conv, nullable: true, resolve: (item, _, context) => convOfItem(item, context) }),
    read: t.expose('read', { type: 'Seq', nullable: true }),
    unread: t.exposeInt('unread', { nullable: true }),
    head: t.expose('head', { type: 'Seq', nullable: true, description: headNote }),
    error: t.expose('error', { type: itemError, nullable: true }),
  }),
});

const readBatch = builder.objectRef<ReadBatch>('ReadBatch').implement({
  fields: (t) => ({
    items: t.expose('items', { type: [readItem], description: 'in the order asked' }),
    badge: t.field({ type: badge, resolve: (_, __, context) => loadBadge(context.deps, viewerOf(context)) }),
  }),
});

const readAllPage = builder.objectRef<ReadAllPage>('ReadAllPage').implement({
  fields: (t) => ({
    items: t.expose('items', { type: [readItem], description: 'what this chunk has read, at most 200' }),
    complete: t.exposeBoolean('complete', { description: 'nothing is left; else repeat with the same token' }),
    badge: t.field({ type: badge, resolve: (_, __, context) => loadBadge(context.deps, viewerOf(context)) }),
  }),
});

const deliveryItem = builder.objectRef<DeliveryItem>('DeliveryItem').implement({
  description: 'One conversation’s merged delivery cursor. An item fails alone: then conv is null and error says why.',
  fields: (t) => ({
    conv: t.field({ type: conv, nullable: true, resolve: (item, _, context) => convOfItem(item, context) }),
    delivered: t.expose('delivered', { type: 'Seq', nullable: true }),
    head: t.expose('head', { type: 'Seq', nullable: true, description: headNote }),
    error: t.expose('error', { type: itemError, nullable: true }),
  }),
});

const deliveryBatch = builder.objectRef<DeliveryBatch>('DeliveryBatch').implement({
  fields: (t) => ({ items: t.expose('items', { type: [deliveryItem], description: 'in the order asked' }) }),
});

const position = builder.inputRef<AskedPosition>('Position').implement({
  fields: (t) => ({ conv: t.id({ required: true }), seq: t.field({ type: 'Seq', required: true }) }),
});
const maxItems = 200;

builder.mutationFields((t) => ({
  markReadMany: t.field({
    type: readBatch,
    nullable: true,
    description:
      'markRead for many conversations in one transaction: a result or an error for each, one bad item fails alone. Of several positions in one conversation the largest that is not ahead counts.',
    args: { items: t.arg({ type: [position], required: true, description: 'at most 200' }) },
    complexity: ({ items }) => priced(items.length, maxItems),
    resolve: (_, args, context) => markReadMany(context.deps, viewerOf(context), args),
  }),
  markAllRead: t.field({
    type: readAllPage,
    nullable: true,
    description:
      'Everything that the user was shown is read, nothing newer: what `asOf` of a badge or convs answer had seen, in all conversations, left ones too. In chunks: repeat with the same token until `complete`.',
    args: { asOf: t.arg.string({ required: true, description: 'of the answer that the user looked at' }) },
    complexity: () => priced(maxItems, maxItems),
    resolve: (_, args, context) => markAllRead(context.deps, viewerOf(context), args),
  }),
  ackMany: t.field({
    type: deliveryBatch,
    nullable: true,
    description: 'ack for many conversations in one transaction: a result or an error for each. Devices only.',
    args: { items: t.arg({ type: [position], required: true, description: 'at most 200' }) },
    complexity: ({ items }) => priced(items.length, maxItems),
    resolve: (_, args, context) => ackMany(context.deps, viewerOf(context), args),
  }),
}));
