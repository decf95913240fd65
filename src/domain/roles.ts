// What single members of a group are: owner, admin, silenced, under which name (M7).
import { deviceOf, type ConvId, type Role, type UserId, type Viewer } from '../model.js';
import { isLeader, requireMay, requireMayActOn, requirePerson } from './access.js';
import type { Deps } from './deps.js';
import { badInput, forbidden, overLimit } from './errors.js';
import { requireConvId, requireShort, requireUserId } from './input.js';
import { shareRequests, withdrawRequests } from './join-requests.js';
import { announce, underLock, type ConvAnswer, type Scene } from './scene.js';
import type { Membership } from '../store/memberships.js';

interface OnMember {
  readonly conv: string;
  readonly user: string;
}

/** Makes an ordinary member an admin, or the reverse. Becoming an admin ends a mute. */
export async function setRole(
  deps: Deps,
  viewer: Viewer,
  input: OnMember & { readonly role: Role },
): Promise<ConvAnswer> {
  const { role } = input;
  if (role === 'OWNER') throw badInput('the owner is changed by transferConv');
  const [id, user] = [requireConvId(input.conv), requireUserId(input.user)];
  return underLock(deps, viewer, id, [user], async (scene) => {
    const conv = requireMay('setRole', viewer, scene.conv, scene.actor);
    const target = requireMember(scene, user);
    if (target.role === 'OWNER') throw forbidden('the owner is changed by transferConv');
    if (target.role === role) return;
    const { maxAdmins } = deps.limits;
    if (role === 'ADMIN' && (await scene.tx.groups.countAdmins(id)) >= maxAdmins) {
      throw overLimit('a group', maxAdmins, 'admins');
    }
    const contentType = role === 'ADMIN' ? 'ADMIN_ADD' : 'ADMIN_REMOVE';
    const changes = await scene.tx.clock.touch([user]);
    await announce(deps, viewer, scene, conv, {
      event: { kind: 'NOTICE', contentType, content: { users: [user] } },
      changes,
    });
    await changeRole(scene, id, user, role);
  });
}

/** The owner hands the group on and is an ordinary member from then on. */
export async function transferConv(deps: Deps, viewer: Viewer, input: OnMember): Promise<ConvAnswer> {
  const [id, to] = [requireConvId(input.conv), requireUserId(input.user)];
  return underLock(deps, viewer, id, [to], async (scene) => {
    const conv = requireMay('transferConv', viewer, scene.conv, scene.actor);
    const target = requireMember(scene, to);
    if (target.role === 'OWNER') return;
    const from = await scene.tx.groups.owner(id);
    const changes = await scene.tx.clock.touch([from, to]);
    await announce(deps, viewer, scene, conv, {
      event: { kind: 'NOTICE', contentType: 'OWNER_TRANSFER', content: { from, to } },
      changes,
    });
    await changeRole(scene, id, from, 'MEMBER');
    if (isLeader(target)) await scene.tx.groups.setRole(id, to, 'OWNER');
    else await changeRole(scene, id, to, 'OWNER');
  });
}

/** The member's number was drawn; who leads is shown the requests to join, who does no longer is not. */
async function changeRole(scene: Scene, conv: ConvId, user: UserId, role: Role): Promise<void> {
  await scene.tx.groups.setRole(conv, user, role);
  if (role === 'MEMBER') await withdrawRequests(scene, conv, user);
  else await shareRequests(scene, conv, user);
}

/** "Without end": a time that every client can show. */
const never = new Date('9999-12-31T00:00:00Z');

/** Until then; absent: without end. Leaving and coming back does not end it. */
export async function muteMember(
  deps: Deps,
  viewer: Viewer,
  input: OnMember & { readonly until?: Date | null | undefined },
): Promise<ConvAnswer> {
  const until = input.until ?? never;
  if (until.getTime() <= Date.now() || until > never) throw badInput('until lies in the past or beyond the year 9999');
  return silence(deps, viewer, input, until);
}

export const unmuteMember = (deps: Deps, viewer: Viewer, input: OnMember): Promise<ConvAnswer> =>
  silence(deps, viewer, input, null);

async function silence(deps: Deps, viewer: Viewer, input: OnMember, until: Date | null): Promise<ConvAnswer> {
  const [id, user] = [requireConvId(input.conv), requireUserId(input.user)];
  return underLock(deps, viewer, id, [user], async (scene) => {
    const conv = requireMay('muteMember', viewer, scene.conv, scene.actor);
    const target = requireMember(scene, user);
    requireMayActOn(viewer, scene.actor, target);
    if (isLeader(target)) throw forbidden('an admin is not muted');
    const before = target.silencedUntil;
    const isSame = until === null ? before === null || before <= new Date() : before?.getTime() === until.getTime();
    if (isSame) return;
    const changes = await scene.tx.clock.touch([user]);
    const content = { users: [user], ...(until === null ? {} : { until: until.toISOString() }) };
    const contentType = until === null ? 'MEMBER_UNMUTED' : 'MEMBER_MUTED';
    await announce(deps, viewer, scene, conv, { event: { kind: 'NOTICE', contentType, content }, changes });
    await scene.tx.groups.silence(id, user, until);
  });
}

/** The viewer's own name in this group; null: none. Told to who is online, found in the members by the others. */
export async function setNickname(
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly nickname?: string | null | undefined },
): Promise<ConvAnswer> {
  const { user } = requirePerson(viewer);
  const id = requireConvId(input.conv);
  const nickname = input.nickname == null ? null : requireShort(input.nickname, 'nickname', 64);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay('setNickname', viewer, scene.conv, scene.actor);
    if (scene.actor?.nickname === nickname) return;
    const changes = await scene.tx.clock.touch([user]);
    await scene.tx.groups.setNickname(id, user, nickname);
    const about = {
      kind: 'conv',
      conv: id,
      conversationType: conv.type,
      contentType: 'MEMBER_NICKNAME_UPDATE',
    } as const;
    const { users } = await scene.tx.memberships.settle(id, deps.delivery);
    const others = users.filter((other) => other !== user);
    scene.tell(others, { ...about, originDevice: null, change: null });
    const originDevice = deviceOf(viewer)?.device ?? null;
    scene.tell([user], { ...about, originDevice, change: changes.get(user) ?? null });
  });
}

function requireMember(scene: Scene, user: UserId): Membership {
  const found = scene.members.get(user);
  if (found?.joined !== true) throw badInput(`${user} is no member`);
  return found;
}
