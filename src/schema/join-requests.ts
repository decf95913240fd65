// Requests to join a group.
import {
  joinRequests,
  refuseJoin,
  requestJoin,
  toJoinRequestCursor,
  type JoinRequestAnswer,
} from '../domain/join-requests.js';
import { approveJoin } from '../domain/memberships.js';
import type { JoinRequest } from '../model.js';
import { builder, priced } from './builder.js';
import { connectionOf, toConnection } from './connections.js';
import { requestState } from './contacts.js';
import { viewerOf } from './context.js';
import { user, userOf } from './users.js';

/** In a client's cache. */
export const joinRequestId = ({ conv, user: applicant }: Pick<JoinRequest, 'conv' | 'user'>): string =>
  JSON.stringify([conv, applicant]);

export const joinRequest = builder.objectRef<JoinRequest>('JoinRequest').implement({
  description:
    'Somebody wants to be in a group, or to add somebody. One for each group and applicant: asking again opens it again.',
  fields: (t) => ({
    id: t.id({ description: 'names the pair', resolve: joinRequestId }),
    conv: t.exposeID('conv', { description: 'the group’s id' }),
    user: t.field({ type: user, resolve: (parent, _, context) => userOf(context, parent.user) }),
    inviter: t.field({
      type: user,
      nullable: true,
      description: 'the member who wanted to add them; null: they asked themselves',
      resolve: ({ inviter }, _, context) => (inviter === null ? null : userOf(context, inviter)),
    }),
    state: t.expose('state', { type: requestState }),
    text: t.exposeString('text', { nullable: true }),
    requestedAt: t.expose('requestedAt', { type: 'DateTime' }),
    handledAt: t.expose('handledAt', { type: 'DateTime', nullable: true }),
  }),
});

const payload = builder.objectRef<JoinRequestAnswer>('JoinRequestPayload').implement({
  fields: (t) => ({
    request: t.field({
      type: joinRequest,
      nullable: true,
      description: 'as the viewer is shown it; null to the service key',
      resolve: ({ viewer, conv, user: applicant }, _, { deps }) =>
        viewer === null ? null : deps.loads.joinRequest({ viewer, conv, user: applicant }),
    }),
  }),
});

const connection = connectionOf<JoinRequest>('JoinRequest', joinRequest, 'A page of requests to join.');

builder.queryField('joinRequests', (t) =>
  t.field({
    type: connection,
    description: 'The viewer’s own, those for whom the viewer asked, and those of the groups that the viewer leads.',
    args: {
      conv: t.arg.id({ description: 'of this group only' }),
      state: t.arg({ type: requestState, description: 'default all' }),
      first: t.arg.int({ description: '1 to 200, default 50' }),
      after: t.arg.string(),
    },
    complexity: ({ first }) => priced(first, 50),
    resolve: async (_, args, context) =>
      toConnection(await joinRequests(context.deps, viewerOf(context), args), toJoinRequestCursor),
  }),
);

const answer = 'Owner, admins, service key; else FORBIDDEN. CONFLICT with the `outcome` when somebody answered before.';

builder.mutationFields((t) => ({
  requestJoin: t.field({
    type: payload,
    nullable: true,
    description:
      'Asks to be let in, where joinPolicy is APPROVAL. Where it is OPEN, use join (BAD_USER_INPUT); an invite-only group answers NOT_MEMBER, like a missing one.',
    args: { conv: t.arg.id({ required: true }), text: t.arg.string({ description: '1 to 255 characters' }) },
    resolve: (_, args, context) => requestJoin(context.deps, viewerOf(context), args),
  }),
  approveJoin: t.field({
    type: payload,
    nullable: true,
    description: `Lets the applicant in. ${answer}`,
    args: { conv: t.arg.id({ required: true }), user: t.arg.id({ required: true }) },
    resolve: (_, args, context) => approveJoin(context.deps, viewerOf(context), args),
  }),
  refuseJoin: t.field({
    type: payload,
    nullable: true,
    description: answer,
    args: { conv: t.arg.id({ required: true }), user: t.arg.id({ required: true }) },
    resolve: (_, args, context) => refuseJoin(context.deps, viewerOf(context), args),
  }),
}));
