// Marking as read.
import { markRead, type ReadAnswer } from '../domain/read-state.js';
import { badge as loadBadge } from '../domain/unread.js';
import { builder } from './builder.js';
import { viewerOf } from './context.js';
import { conv, convOf } from './conversations.js';
import { badge } from './unread.js';

const readState = builder.objectRef<ReadAnswer>('ReadState').implement({
  description: 'The merged read position: what it is now, which may be more than was asked for.',
  fields: (t) => ({
    conv: t.field({ type: conv, resolve: (answer, _, context) => convOf(answer, context) }),
    badge: t.field({ type: badge, resolve: (_, __, context) => loadBadge(context.deps, viewerOf(context)) }),
    read: t.expose('read', { type: 'Seq' }),
    unread: t.exposeInt('unread'),
    head: t.expose('head', { type: 'Seq', description: 'the head that unread was computed at' }),
  }),
});

builder.mutationField('markRead', (t) =>
  t.field({
    type: readState,
    nullable: true,
    description:
      'The user has read up to seq, on all devices. Merged by maximum: a lower or equal one changes nothing. CURSOR_AHEAD above head (a former member is lowered to the last seq they see instead).',
    args: { conv: t.arg.id({ required: true }), seq: t.arg({ type: 'Seq', required: true }) },
    resolve: (_, args, context) => markRead(context.deps, viewerOf(context), args),
  }),
);
