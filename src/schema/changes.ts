// The changes feed, and the hint that something new is in it.
import { changedRow, changes, type ChangedRow, type ChangePage } from '../domain/changes.js';
import type { ChangeItem } from '../domain/hints.js';
import { builder, priced } from './builder.js';
import { contact, contactRequest } from './contacts.js';
import { viewerOf } from './context.js';
import { conv } from './conversations.js';
import { addHintFields } from './hint-fields.js';
import { joinRequest, joinRequestId } from './join-requests.js';

type Row<Kind extends ChangedRow['kind']> = Extract<ChangedRow, { kind: Kind }>;

const convChange = builder.objectRef<Row<'conv'>>('ConvChange').implement({
  description:
    'The viewer’s own part of a conversation changed: membership, settings or read position. One that was left comes with `joined: false`. New messages are no change of this kind: `sync` has them.',
  fields: (t) => ({ conv: t.field({ type: conv, description: 'as it is now', resolve: (row) => row.conv }) }),
});
const contactChange = builder.objectRef<Row<'contact'>>('ContactChange').implement({
  description: 'How the viewer holds another user. One that was deleted comes with `active: false`.',
  fields: (t) => ({ contact: t.field({ type: contact, resolve: (row) => row.contact }) }),
});
const contactRequestChange = builder.objectRef<Row<'contactRequest'>>('ContactRequestChange').implement({
  description: 'A contact request that the viewer sent or was asked.',
  fields: (t) => ({ contactRequest: t.field({ type: contactRequest, resolve: (row) => row.contactRequest }) }),
});
const joinRequestChange = builder.objectRef<Row<'joinRequest'>>('JoinRequestChange').implement({
  description: 'A request to join: the viewer’s own, one that the viewer asked for, or one of a group that they lead.',
  fields: (t) => ({
    id: t.id({ description: 'of the JoinRequest', resolve: (row) => joinRequestId(row.joinRequest) }),
    joinRequest: t.field({
      type: joinRequest,
      nullable: true,
      description: 'null: no longer the viewer’s to see; forget it',
      resolve: (row) => (row.joinRequest.shown ? row.joinRequest : null),
    }),
  }),
});

const typeNames = {
  conv: 'ConvChange',
  contact: 'ContactChange',
  contactRequest: 'ContactRequestChange',
  joinRequest: 'JoinRequestChange',
} as const satisfies Record<ChangedRow['kind'], string>;

const change = builder.unionType('Change', {
  description: 'A row of the viewer’s own state, as it is now: to be written over what the client holds of it.',
  types: [convChange, contactChange, contactRequestChange, joinRequestChange],
  resolveType: ({ kind }) => typeNames[kind],
});

export const changeHint = builder.objectRef<ChangeItem>('ChangeHint').implement({
  description:
    'A contact, a contact request or a request to join of the viewer changed. What was missed is found by `changes`.',
  fields: (t) => ({
    change: t.field({
      type: change,
      nullable: true,
      description: 'the same as in `changes`',
      resolve: ({ hint }, _, { connection, deps }) =>
        connection && changedRow(deps, connection.viewer.user, hint.about),
    }),
  }),
});
addHintFields(changeHint);

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
