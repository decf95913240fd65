// Who is in a conversation.
import { addMembers, join, leave, members, removeMember } from '../domain/memberships.js';
import type { Member } from '../model.js';
import { builder, priced } from './builder.js';
import { connectionOf, toConnection } from './connections.js';
import { viewerOf } from './context.js';
import { conv, convPayload, role } from './conversations.js';
import { user, userOf } from './users.js';

const member = builder.objectRef<Member>('Member').implement({
  fields: (t) => ({
    user: t.field({
      type: user,
      resolve: ({ user: id }, _, context) => userOf(context, id),
    }),
    role: t.expose('role', { type: role }),
    nickname: t.exposeString('nickname', { nullable: true, description: 'the member’s own name here' }),
    silencedUntil: t.expose('silencedUntil', {
      type: 'DateTime',
      nullable: true,
      description: 'may not send until then',
    }),
  }),
});
const memberConnection = connectionOf<Member>('Member', member, 'A page of members, by user id.');

builder.objectField(conv, 'members', (t) =>
  t.field({
    type: memberConnection,
    description: 'The members now. Empty for a former member.',
    args: { first: t.arg.int({ description: '1 to 200, default 50' }), after: t.arg.string() },
    // asked for each conversation by itself
    complexity: ({ first }) => priced(first, 50),
    resolve: async (parent, args, context) =>
      toConnection(await members(context.deps, viewerOf(context), parent.id, args), (item) => item.user),
  }),
);

builder.mutationFields((t) => ({
  addMembers: t.field({
    type: convPayload,
    nullable: true,
    description:
      'One event for all whom it adds; members already in are passed over. Owner, admins, service key; where joinPolicy is APPROVAL an ordinary member’s becomes a request to join; else FORBIDDEN, to strangers NOT_MEMBER. BAD_USER_INPUT for an unknown user, or for more members in all than this server allows (500 unless it says otherwise).',
    args: { conv: t.arg.id({ required: true }), users: t.arg.idList({ required: true, description: '1 to 200' }) },
    resolve: (_, args, context) => addMembers(context.deps, viewerOf(context), args),
  }),
  removeMember: t.field({
    type: convPayload,
    nullable: true,
    description:
      'The event is the last one that the removed member sees. The owner and the service key remove anyone but the owner, an admin ordinary members. Somebody who is not in it: nothing changes.',
    args: { conv: t.arg.id({ required: true }), user: t.arg.id({ required: true }) },
    resolve: (_, args, context) => removeMember(context.deps, viewerOf(context), args),
  }),
  join: t.field({
    type: convPayload,
    nullable: true,
    description: 'Only where joinPolicy is OPEN; a closed conversation answers NOT_MEMBER, like a missing one.',
    args: { conv: t.arg.id({ required: true }) },
    resolve: (_, args, context) => join(context.deps, viewerOf(context), args),
  }),
  leave: t.field({
    type: convPayload,
    nullable: true,
    description: 'Not the owner, and not a DIRECT conversation (FORBIDDEN). Repeating it changes nothing.',
    args: { conv: t.arg.id({ required: true }) },
    resolve: (_, args, context) => leave(context.deps, viewerOf(context), args),
  }),
}));
