// Requests to join a group whose policy is APPROVAL (M7): one for each (group, applicant), answered once, shown to the applicant,
// the inviter and whoever leads the group at that moment.
import type { ConvId, JoinRequest, Page, RequestState, UserId, Viewer } from '../model.js';
import type { LockedConv } from '../store/clock.js';
import { requireMay, requirePerson } from './access.js';
import type { ContentTypeName } from './content-types.js';
import type { Deps } from './deps.js';
import { badInput, conflict, notMember } from './errors.js';
import {
  fromOpaque,
  requireConvId,
  requireFirst,
  requireShort,
  requireUserId,
  toConvId,
  toOpaque,
  requireKnown,
  toPage,
} from './input.js';
import { underLock, type Scene } from './scene.js';

export interface JoinRequestAnswer {
  /** who looks; null: the service */
  readonly viewer: UserId | null;
  readonly conv: ConvId;
  readonly user: UserId;
}

/** Asks to be let in. A group that is not to be asked answers as a missing one (M4). */
export async function requestJoin(
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly text?: string | null | undefined },
): Promise<JoinRequestAnswer> {
  const { user } = requirePerson(viewer);
  const id = requireConvId(input.conv);
  const text = input.text == null ? null : requireShort(input.text, 'text', deps.limits.maxRequestText);
  await deps.rates.spend('send', requirePerson(viewer));
  await underLock(deps, viewer, id, [], async (scene) => {
    const { conv, actor } = scene;
    if (conv === null || conv.dissolved || conv.type === 'DIRECT') throw notMember();
    if (actor?.joined === true) throw badInput('the viewer is a member');
    if (conv.joinPolicy === 'INVITE') throw notMember();
    if (conv.joinPolicy === 'OPEN') throw badInput('anybody may join: use join');
    await openRequest(scene, conv, { user, inviter: null, text });
  });
  return { viewer: user, conv: id, user };
}

/** An ordinary member's addMembers where the owner wants to be asked. */
export async function askToAdd(
  viewer: Viewer,
  scene: Scene,
  conv: LockedConv,
  users: readonly UserId[],
): Promise<void> {
  const { user: inviter } = requirePerson(viewer);
  const known = await scene.tx.clock.lockUsers([...users, inviter, ...(await scene.tx.groups.leaders(conv.id))]);
  requireKnown(users, known);
  for (const user of users) await openRequest(scene, conv, { user, inviter, text: null });
}

async function openRequest(
  scene: Scene,
  { id }: LockedConv,
  { user, inviter, text }: { readonly user: UserId; readonly inviter: UserId | null; readonly text: string | null },
): Promise<void> {
  const { tx } = scene;
  const before = (await tx.joinRequests.of(id, [user])).get(user);
  if (before?.state === 'PENDING' && before.text === text && before.inviter === inviter) return;
  // who has asked for themselves is not asked for by another
  if (before?.state === 'PENDING' && before.inviter === null && inviter !== null) return;
  await tx.joinRequests.open(id, user, inviter, text);
  await showToAll(scene, { conv: id, user, inviter }, 'GROUP_REQUEST_RECEIVED');
}

export async function refuseJoin(
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly user: string },
): Promise<JoinRequestAnswer> {
  return answerRequest(deps, viewer, input, (scene, _, request) =>
    closeRequest(viewer, scene, request, 'REFUSED', 'GROUP_REQUEST_REJECTED'),
  );
}

/** The first who answers wins; the others learn what it came to. */
export async function answerRequest(
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly user: string },
  act: (scene: Scene, conv: LockedConv, request: JoinRequest) => Promise<void>,
): Promise<JoinRequestAnswer> {
  const [id, user] = [requireConvId(input.conv), requireUserId(input.user)];
  await underLock(deps, viewer, id, [user], async (scene) => {
    const conv = requireMay('approveJoin', viewer, scene.conv, scene.actor);
    const request = (await scene.tx.joinRequests.of(id, [user])).get(user);
    if (!request) throw badInput('there is no such request');
    if (request.state !== 'PENDING') throw conflict(request.state);
    await act(scene, conv, request);
  });
  return { viewer: viewer.kind === 'service' ? null : viewer.user, conv: id, user };
}

/** Whoever comes in, by whichever way, has nothing to ask for any longer. */
export async function settleRequests(
  viewer: Viewer,
  scene: Scene,
  conv: LockedConv,
  users: readonly UserId[],
): Promise<void> {
  for (const request of (await scene.tx.joinRequests.of(conv.id, users)).values()) {
    if (request.state === 'PENDING') await closeRequest(viewer, scene, request, 'ACCEPTED', 'GROUP_REQUEST_APPROVED');
  }
}

async function closeRequest(
  viewer: Viewer,
  scene: Scene,
  request: JoinRequest,
  state: RequestState,
  contentType: ContentTypeName,
): Promise<void> {
  const handler = viewer.kind === 'service' ? null : viewer.user;
  await scene.tx.joinRequests.close(request.conv, request.user, state, handler);
  await showToAll(scene, request, contentType);
}

async function showToAll(
  scene: Scene,
  { conv, user, inviter }: Pick<JoinRequest, 'conv' | 'user' | 'inviter'>,
  contentType: ContentTypeName,
): Promise<void> {
  const leaders = await scene.tx.groups.leaders(conv);
  const viewers = [...new Set([user, ...(inviter === null ? [] : [inviter]), ...leaders])];
  await scene.tx.clock.lockUsers(viewers);
  tellOfRequest(scene, { conv, user }, contentType, await scene.tx.joinRequests.show(conv, user, viewers));
}

/** Who has begun to lead is shown what waits. */
export async function shareRequests(scene: Scene, conv: ConvId, leader: UserId): Promise<void> {
  for (const { user } of await scene.tx.joinRequests.pending(conv)) {
    tellOfRequest(
      scene,
      { conv, user },
      'GROUP_REQUEST_RECEIVED',
      await scene.tx.joinRequests.show(conv, user, [leader]),
    );
  }
}

/** From who leads no longer they are taken back, but for their own. */
export async function withdrawRequests(scene: Scene, conv: ConvId, former: UserId): Promise<void> {
  for (const { user } of await scene.tx.joinRequests.shownAsLeader(conv, former)) {
    const drawn = await scene.tx.joinRequests.show(conv, user, [former], false);
    tellOfRequest(scene, { conv, user }, 'GROUP_REQUEST_WITHDRAWN', drawn);
  }
}

function tellOfRequest(
  { tell }: Scene,
  { conv, user }: Pick<JoinRequest, 'conv' | 'user'>,
  contentType: ContentTypeName,
  drawn: ReadonlyMap<UserId, number>,
): void {
  const about = { type: 'joinRequest', conv, user } as const;
  for (const [viewer, change] of drawn) {
    tell([viewer], { kind: 'change', conversationType: 'NONE', contentType, about, change, originDevice: null });
  }
}

export interface JoinRequestsInput {
  readonly conv?: string | null | undefined;
  readonly state?: RequestState | null | undefined;
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** Those that the viewer is shown: their own, and of the groups that they lead. */
export async function joinRequests(deps: Deps, viewer: Viewer, input: JoinRequestsInput): Promise<Page<JoinRequest>> {
  const { user } = requirePerson(viewer);
  const first = requireFirst(input.first, 50, deps.limits.maxPage);
  const after = fromCursor(input.after);
  const conv = input.conv == null ? null : toConvId(input.conv);
  const found = await deps.store.joinRequests.page(user, { conv, state: input.state ?? null, after, first });
  return toPage(found, first, after);
}

export const toJoinRequestCursor = ({ conv, user }: JoinRequest): string => toOpaque(`${conv} ${user}`);

function fromCursor(value: string | null | undefined): { conv: ConvId; user: UserId } | null {
  if (value == null) return null;
  const [, conv, user] = /^(\S+) (.+)$/su.exec(fromOpaque(value)) ?? [];
  if (conv === undefined || user === undefined) throw badInput('after is no cursor of this connection');
  try {
    return { conv: requireConvId(conv), user: requireUserId(user) };
  } catch {
    throw badInput('after is no cursor of this connection');
  }
}
