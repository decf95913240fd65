// Every permission of the service: who may ask, and what a role may do (M3, M4, M7).
import {
  deviceOf,
  type DeviceViewer,
  type PersonViewer,
  type Role,
  type ServiceViewer,
  type Viewer,
} from '../model.js';
import type { Look } from '../store/conversations.js';
import type { LockedConv } from '../store/clock.js';
import type { Membership } from '../store/memberships.js';
import type { Tx } from '../store/store.js';
import { forbidden, notMember, refusal } from './errors.js';

export function requirePerson(viewer: Viewer): PersonViewer {
  if (viewer.kind === 'service') throw forbidden('the service key names no user: send x-tidemark-user');
  return viewer;
}

export function requireDevice(viewer: Viewer): DeviceViewer {
  if (viewer.kind !== 'device') throw forbidden('only a device may do this');
  return viewer;
}

export function requireService(viewer: Viewer): ServiceViewer {
  if (viewer.kind !== 'service') throw forbidden('only the service key by itself may do this');
  return viewer;
}

/** The credential must hold still: asked after the last wait for a lock, by a statement of its own (I3, I5). */
export async function requireCurrent(tx: Tx, viewer: Viewer): Promise<void> {
  const status = await tx.devices.status(viewer);
  if (status !== 'ok') throw refusal(status);
}

export function toLook(viewer: PersonViewer): Look {
  const device = deviceOf(viewer);
  return { user: viewer.user, device: device?.device ?? null, installEpoch: device?.installEpoch ?? 0 };
}

/** What the roles of a group may do. The service key by itself may do all of it; in a DIRECT conversation nobody may (M7). */
const permissions = {
  addMembers: ['OWNER', 'ADMIN'],
  removeMember: ['OWNER', 'ADMIN'],
  leave: ['ADMIN', 'MEMBER'],
  askToAdd: ['OWNER', 'ADMIN', 'MEMBER'],
  setNickname: ['OWNER', 'ADMIN', 'MEMBER'],
  updateConv: ['OWNER', 'ADMIN'],
  muteAll: ['OWNER', 'ADMIN'],
  muteMember: ['OWNER', 'ADMIN'],
  pinEvent: ['OWNER', 'ADMIN'],
  unpinEvent: ['OWNER', 'ADMIN'],
  approveJoin: ['OWNER', 'ADMIN'],
  refuseJoin: ['OWNER', 'ADMIN'],
  setRole: ['OWNER'],
  transferConv: ['OWNER'],
  dissolveConv: ['OWNER'],
  banConv: [],
} as const satisfies Record<string, readonly Role[]>;

export const directForEver = 'a direct conversation has its two members for ever';

export type Action = keyof typeof permissions;

/** @throws NOT_MEMBER to strangers, FORBIDDEN to members whose role or conversation does not allow it */
export function requireMay(
  action: Action,
  viewer: Viewer,
  conv: LockedConv | null,
  actor: Membership | undefined,
): LockedConv {
  if (conv === null || conv.dissolved) throw notMember();
  if (viewer.kind !== 'service' && actor?.role == null) throw notMember();
  if (conv.type === 'DIRECT') throw forbidden(directForEver);
  if (viewer.kind === 'service') return conv;
  const role = actor?.role;
  if (role == null || !(permissions[action] as readonly Role[]).includes(role))
    throw forbidden(`a ${role ?? 'stranger'} may not ${action}`);
  return conv;
}

export const isLeader = (member: Membership | undefined): boolean =>
  member?.role === 'OWNER' || member?.role === 'ADMIN';

/** On whom an actor may act: owner and service on anyone but the owner, an admin on ordinary members (M7). */
export function requireMayActOn(viewer: Viewer, actor: Membership | undefined, target: Membership): void {
  if (target.role === 'OWNER') throw forbidden('nobody may do this to the owner');
  if (viewer.kind !== 'service' && actor?.role === 'ADMIN' && target.role === 'ADMIN') {
    throw forbidden('an admin may not do this to an admin');
  }
}
