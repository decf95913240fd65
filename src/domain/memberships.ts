// Who is in a conversation: adding, removing, joining, leaving (M2–M7). Every decision is taken after the conversation's lock
// is held, and every change is one event that its subjects see: the first of their period or the last.
import type { ConvId, Member, Page, UserId, Viewer } from '../model.js';
import type { LockedConv } from '../store/clock.js';
import type { Tx } from '../store/store.js';
import { directForEver, isLeader, requireMay, requireMayActOn, requirePerson } from './access.js';
import type { Tell } from './commit.js';
import type { Deps } from './deps.js';
import { badInput, forbidden, notMember, overLimit } from './errors.js';
import { requireConvId, requireFirst, requireUserId, requireUsers, requireKnown, toPage } from './input.js';
import { answerRequest, askToAdd, settleRequests, withdrawRequests, type JoinRequestAnswer } from './join-requests.js';
import { appendSystemEvent, tellOfSystemEvent, underLock, type ConvAnswer, type Scene } from './scene.js';

export async function addMembers(
  deps: Deps,
  viewer: Viewer,
  input: { conv: string; users: readonly string[] },
): Promise<ConvAnswer> {
  const id = requireConvId(input.conv);
  const users = requireUsers(input.users, 'users', deps.limits.maxBatch);
  if (users.length === 0) throw badInput('users is empty');
  return underLock(deps, viewer, id, users, async (scene) => {
    const fresh = users.filter((user) => scene.members.get(user)?.joined !== true);
    if (scene.conv?.joinPolicy === 'APPROVAL' && scene.actor?.role === 'MEMBER') {
      await askToAdd(viewer, scene, requireMay('askToAdd', viewer, scene.conv, scene.actor), fresh);
      return;
    }
    const conv = requireMay('addMembers', viewer, scene.conv, scene.actor);
    await enter(deps, viewer, scene, conv, fresh, 'MEMBER_INVITE');
  });
}

/** Only where the policy is OPEN: a closed conversation answers as a missing one (M7). */
export async function join(deps: Deps, viewer: Viewer, input: { conv: string }): Promise<ConvAnswer> {
  const { user } = requirePerson(viewer);
  const id = requireConvId(input.conv);
  return underLock(deps, viewer, id, [], async (scene) => {
    const { conv, actor } = scene;
    if (actor?.joined === true && conv?.dissolved === false) {
      if (conv.type === 'DIRECT') throw forbidden(directForEver);
      return;
    }
    if (conv === null || conv.dissolved || conv.joinPolicy !== 'OPEN' || conv.type === 'DIRECT') throw notMember();
    await enter(deps, viewer, scene, conv, [user], 'MEMBER_ENTER');
  });
}

/** Lets in who asked; that answers the request. */
export const approveJoin = (
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly user: string },
): Promise<JoinRequestAnswer> =>
  answerRequest(deps, viewer, input, (scene, conv, { user, inviter }) =>
    enter(deps, viewer, scene, conv, [user], inviter === null ? 'MEMBER_ENTER' : 'MEMBER_INVITE'),
  );

export async function removeMember(
  deps: Deps,
  viewer: Viewer,
  input: { conv: string; user: string },
): Promise<ConvAnswer> {
  const id = requireConvId(input.conv);
  const user = requireUserId(input.user);
  if (viewer.kind !== 'service' && viewer.user === user) throw badInput('to go yourself, leave');
  return underLock(deps, viewer, id, [user], async (scene) => {
    const conv = requireMay('removeMember', viewer, scene.conv, scene.actor);
    const target = scene.members.get(user);
    if (target?.joined !== true) return;
    requireMayActOn(viewer, scene.actor, target);
    await exit(deps, viewer, scene, conv, user, 'MEMBER_KICK');
  });
}

export async function leave(deps: Deps, viewer: Viewer, input: { conv: string }): Promise<ConvAnswer> {
  const { user } = requirePerson(viewer);
  const id = requireConvId(input.conv);
  return underLock(deps, viewer, id, [], async (scene) => {
    // has left already: the same answer
    if (scene.actor?.joined === false) return;
    const conv = requireMay('leave', viewer, scene.conv, scene.actor);
    await exit(deps, viewer, scene, conv, user, 'MEMBER_QUIT');
  });
}

/** Appends the event that begins the membership of all of them, and opens their periods there. */
async function enter(
  deps: Deps,
  viewer: Viewer,
  scene: Scene,
  conv: LockedConv,
  users: readonly UserId[],
  contentType: 'MEMBER_INVITE' | 'MEMBER_ENTER',
): Promise<void> {
  if (users.length === 0) return;
  const { tx, tell } = scene;
  const { maxGroupMembers } = deps.limits;
  if (conv.type === 'GROUP' && conv.memberCount + users.length > maxGroupMembers)
    throw overLimit('a group', maxGroupMembers, 'members');
  await settleRequests(viewer, scene, conv, users);
  const changes = await tx.clock.touch(users);
  requireKnown(users, changes);
  const seq = await appendSystemEvent(tx, viewer, conv, { kind: 'MEMBERSHIP', contentType, content: { users } });
  await tx.memberships.open(conv.id, users, 'MEMBER', seq);
  await tellOfSystemEvent(deps, { tx, tell, viewer, conv, seq, kind: 'MEMBERSHIP', contentType, changes });
  if (conv.historyVisible) await tellOfReads(tx, tell, viewer, conv, changes);
}

/** Joining with visible history has moved the read position: tell it like any other move (M2, R4). */
async function tellOfReads(
  tx: Tx,
  tell: Tell,
  viewer: Viewer,
  { id, type }: LockedConv,
  changes: ReadonlyMap<UserId, number>,
): Promise<void> {
  const users = [...changes.keys()];
  const states = await tx.conversations.seen(users.map((user) => ({ user, device: null, installEpoch: 0, conv: id })));
  users.forEach((user, index) => {
    const state = states[index];
    if (!state) return;
    const { read, unread, head } = state;
    // the device is somebody else's, unless the user joined by themselves
    const originDevice = viewer.kind === 'device' && viewer.user === user ? viewer.device : null;
    // the same row has changed, so the number is the one of joining
    const change = changes.get(user) ?? null;
    tell([user], { kind: 'read', conv: id, conversationType: type, read, unread, head, originDevice, change });
  });
}

/** Appends the event that ends the membership, and closes the period there: it is the last one that the leaver sees (M2). */
async function exit(
  deps: Deps,
  viewer: Viewer,
  scene: Scene,
  conv: LockedConv,
  user: UserId,
  contentType: 'MEMBER_QUIT' | 'MEMBER_KICK',
): Promise<void> {
  const { tx, tell } = scene;
  const changes = await tx.clock.touch([user]);
  const seq = await appendSystemEvent(tx, viewer, conv, {
    kind: 'MEMBERSHIP',
    contentType,
    content: { users: [user] },
  });
  await tx.memberships.close(conv.id, [user], seq);
  await tellOfSystemEvent(deps, { tx, tell, viewer, conv, seq, kind: 'MEMBERSHIP', contentType, changes });
  if (isLeader(scene.members.get(user))) await withdrawRequests(scene, conv.id, user);
}

/** The members now, by user id. A former member has left the room: for them it is empty. */
export async function members(
  deps: Deps,
  viewer: Viewer,
  conv: ConvId,
  input: { first?: number | null | undefined; after?: string | null | undefined },
): Promise<Page<Member>> {
  const first = requireFirst(input.first, 50, deps.limits.maxPage);
  const after = input.after == null ? null : requireUserId(input.after, 'after');
  const looking = viewer.kind === 'service' ? null : viewer.user;
  const found = await deps.store.memberships.page(conv, looking, after, first);
  return toPage(found, first, after);
}
