// The badge, and why it shows what it shows.
import { badge as loadBadge, unreadAudit, type AuditAnswer } from '../domain/unread.js';
import { requireDevice } from '../domain/access.js';
import type { Badge } from '../model.js';
import { builder, requireAffordable, statement } from './builder.js';
import { viewerOf } from './context.js';

export const badge = builder.objectRef<Badge>('Badge').implement({
  description: 'The total of all open memberships: exact, without a cap, equal on all of the user’s devices.',
  fields: (t) => ({
    id: t.id({ description: 'the user’s id: one badge a user', resolve: ({ user }) => user }),
    unread: t.exposeInt('unread', { description: 'unread messages in conversations that are not muted' }),
    mutedUnread: t.exposeInt('mutedUnread', { description: 'unread messages in muted conversations' }),
    convs: t.exposeInt('convs', { description: 'unmuted conversations with something unread' }),
    asOf: t.exposeString('asOf', { description: 'names the moment that the numbers are of; opaque' }),
  }),
});

const audit = builder.objectRef<AuditAnswer>('UnreadAudit').implement({
  description: 'The seqs that make up an unread number, from the same snapshot as the number.',
  fields: (t) => ({
    unread: t.exposeInt('unread'),
    seqs: t.expose('seqs', { type: ['Seq'], description: 'ascending' }),
    head: t.expose('head', { type: 'Seq' }),
    read: t.expose('read', { type: 'Seq' }),
    hasMore: t.exposeBoolean('hasMore', { description: 'ask again after the last seq' }),
  }),
});

builder.queryFields((t) => ({
  badge: t.field({
    type: badge,
    description: 'The badge now.',
    complexity: statement,
    resolve: (_, __, context) => loadBadge(context.deps, viewerOf(context)),
  }),
  unreadAudit: t.field({
    type: audit,
    complexity: statement,
    description: '“Why does it say 3?”: which events are unread. `seqs` and `unread` always agree.',
    args: {
      conv: t.arg.id({ required: true }),
      user: t.arg.id({ description: 'another user: service key only' }),
      after: t.arg({ type: 'Seq', description: 'only seqs above it' }),
      first: t.arg.int({ description: '1 to 1,000, default 100' }),
    },
    resolve: (_, args, context) => unreadAudit(context.deps, viewerOf(context), args),
  }),
}));

builder.subscriptionField('badgeChanged', (t) =>
  t.field({
    type: badge,
    description:
      'The badge now, then whenever it may have changed: at most once a second, the last change always. After lost hints it is computed anew.',
    subscribe: (_, __, context, info) => {
      requireAffordable(context, info);
      return context.deps.badges.open(requireDevice(viewerOf(context)).user);
    },
    resolve: (item) => item,
  }),
);
