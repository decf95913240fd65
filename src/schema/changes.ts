// The changes feed.
import { changes, type Change, type ChangePage } from '../domain/changes.js';
import { builder, priced } from './builder.js';
import { viewerOf } from './context.js';
import { conv } from './conversations.js';

const convChange = builder.objectRef<Change>('ConvChange').implement({
  description:
    'The viewer’s own part of a conversation changed: membership, settings or read position. One that was left comes with `joined: false`. New messages are no change of this kind: `sync` has them.',
  fields: (t) => ({ conv: t.field({ type: conv, description: 'as it is now', resolve: (change) => change.conv }) }),
});

const change = builder.unionType('Change', {
  description: 'A row of the viewer’s own state, as it is now: to be written over what the client holds of it.',
  types: [convChange],
  resolveType: () => 'ConvChange',
});

const changePage = builder.objectRef<ChangePage>('ChangePage').implement({
  description: 'All of one snapshot, in the order of the last changes. A row comes once, with its last change.',
  fields: (t) => ({
    items: t.expose('items', { type: [change], description: 'applying one twice gives the same state' }),
    cursor: t.exposeString('cursor', { description: 'ask again after it; opaque, good for as long as you like' }),
    hasMore: t.exposeBoolean('hasMore', { description: 'ask again at once' }),
    reset: t.exposeBoolean('reset', {
      description:
        '`after` was of another life of the database or too old: forget what the feed has told, these items begin from the start',
    }),
  }),
});

builder.queryField('changes', (t) =>
  t.field({
    type: changePage,
    description:
      'What changed in the viewer’s own state since a cursor: the cheap way to be up to date again. Whichever cursor a client holds, applying the pages after it leads to the state of now.',
    args: {
      after: t.arg.string({ description: 'a `cursor` of an earlier page; without one from the beginning' }),
      first: t.arg.int({ description: '1 to 200, default 50' }),
    },
    complexity: ({ first }) => priced(first, 50),
    resolve: (_, args, context) => changes(context.deps, viewerOf(context), args),
  }),
);
