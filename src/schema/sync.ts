// Catching up after being away.
import { sync, type ResetReason, type SyncAnswer, type SyncItem } from '../domain/sync.js';
import type { Seq } from '../model.js';
import { builder, priced } from './builder.js';
import { viewerOf } from './context.js';
import { conv } from './conversations.js';
import { itemError } from './errors.js';
import { event } from './messages.js';

const resetReason = builder.enumType('ResetReason', {
  values: {
    AHEAD: { description: 'the client is ahead of the log: drop this conversation’s events and start at 0' },
    EPOCH: { description: 'the log was rebuilt: drop this conversation’s events and start at 0' },
    TRIMMED: { description: 'events after the cursor are gone: keep what is there, there is a gap' },
  },
});

const reset = builder.objectRef<{ reason: ResetReason; start: Seq }>('SyncReset').implement({
  description: 'The cursor does not fit the log: go on from start.',
  fields: (t) => ({
    reason: t.expose('reason', { type: resetReason }),
    start: t.expose('start', { type: 'Seq' }),
  }),
});

const syncItem = builder.objectRef<SyncItem>('SyncItem').implement({
  description: 'One conversation’s part. An item fails alone: then conv is null and error says why.',
  fields: (t) => ({
    conv: t.expose('conv', { type: conv, nullable: true }),
    events: t.expose('events', { type: [event], description: 'visible ones with seq > after, ascending' }),
    through: t.expose('through', { type: 'Seq', description: 'resume here; it passes what is hidden from the viewer' }),
    head: t.expose('head', { type: 'Seq', description: 'the last seq that the viewer sees' }),
    hasMore: t.exposeBoolean('hasMore', { description: 'ask again after `through`' }),
    reset: t.expose('reset', { type: reset, nullable: true }),
    error: t.expose('error', { type: itemError, nullable: true }),
  }),
});

const syncPage = builder.objectRef<SyncAnswer>('SyncPage').implement({
  description: 'All of one snapshot.',
  fields: (t) => ({
    items: t.expose('items', { type: [syncItem], description: 'in the order asked' }),
    complete: t.exposeBoolean('complete', { description: 'no item has more' }),
  }),
});

const syncFrom = builder.inputType('SyncFrom', {
  fields: (t) => ({
    conv: t.id({ required: true }),
    after: t.field({ type: 'Seq', required: true, description: 'the device’s own local cursor; 0: “I hold nothing”' }),
    epoch: t.int({ description: 'the epoch of what the device holds' }),
  }),
});

builder.queryField('sync', (t) =>
  t.field({
    type: syncPage,
    description:
      'What a device lacks, for many conversations in one request; one total budget goes round fairly. Ask again from each `through` until `complete`, store, then ack.',
    args: {
      from: t.arg({ type: [syncFrom], required: true, description: 'at most 1,000 conversations' }),
      budget: t.arg.int({ description: 'events in all, 1 to 1,000, default 500' }),
    },
    complexity: ({ budget, from }) => priced(Math.max(budget ?? 500, from.length), 500),
    resolve: (_, args, context) => sync(context.deps, viewerOf(context), args),
  }),
);
