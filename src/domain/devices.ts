// Devices, their credentials and their installs (I1–I5). A credential is `tm_<deviceId>.<secret>.<installEpoch>`.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Device, DeviceId, DeviceViewer, UserId, Viewer } from '../model.js';
import type { StoredDevice } from '../store/devices.js';
import type { Tx } from '../store/store.js';
import { requirePerson } from './access.js';
import { commit, type Tell } from './commit.js';
import type { Deps } from './deps.js';
import { DomainError, badInput, forbidden, overLimit, refusal, staleInstall } from './errors.js';
import { requireDeviceId, requireShort, requireUserId } from './input.js';

/** What a credential claims. */
interface Presented {
  readonly device: DeviceId;
  readonly secret: string;
  readonly installEpoch: number;
}
/** Whose secret it is, whatever the epoch: enough for `reinstall`, for nothing else (I2). */
export interface ProvenDevice extends Presented {
  readonly user: UserId;
}
/** Who is asking: a viewer, or why there is none. */
export interface Authentication {
  readonly viewer: Viewer | null;
  readonly refusal: DomainError | null;
  readonly proven: ProvenDevice | null;
}

export interface DeviceAnswer {
  readonly device: Device;
  /** shown once; null where none was made */
  readonly credential: string | null;
}

const form = /^tm_([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{43})\.(\d{1,9})$/u;
const seenEveryMs = 60_000;

const hashOf = (secret: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(createHash('sha256').update(secret).digest());
const newSecret = (): string => randomBytes(32).toString('base64url');
const toCredential = (device: DeviceId, secret: string, epoch: number): string =>
  `tm_${device}.${secret}.${String(epoch)}`;
const unknown = () => new DomainError('UNAUTHENTICATED', 'the credential is malformed or unknown');

export const refused = (reason: DomainError): Authentication => ({ viewer: null, refusal: reason, proven: null });

/** Looks a device's credential up: one row, the hash compared in constant time (I1). */
export async function authenticateDevice(deps: Deps, credential: string): Promise<Authentication> {
  const [, id, secret, epoch] = form.exec(credential) ?? [];
  if (id === undefined || secret === undefined) return refused(unknown());
  const presented: Presented = { device: id as DeviceId, secret, installEpoch: Number(epoch) };
  const stored = await deps.store.devices.byId(presented.device);
  if (!timingSafeEqual(stored?.secretHash ?? new Uint8Array(32), hashOf(secret)) || stored === null)
    return refused(unknown());
  if (stored.revoked) return refused(refusal('revoked'));
  if (presented.installEpoch > stored.installEpoch) return refused(unknown());
  const proven: ProvenDevice = { ...presented, user: stored.user };
  if (presented.installEpoch < stored.installEpoch)
    return { viewer: null, refusal: staleInstall(stored.installEpoch), proven };
  if (Date.now() - (stored.lastSeenAt?.getTime() ?? 0) > seenEveryMs) await deps.store.devices.seen(stored.id);
  const viewer: DeviceViewer = {
    kind: 'device',
    user: stored.user,
    device: stored.id,
    installEpoch: stored.installEpoch,
  };
  return { viewer, refusal: null, proven };
}

export const devices = (deps: Deps, viewer: Viewer): Promise<Device[]> =>
  deps.store.devices.ofUser(requirePerson(viewer).user);

export async function thisDevice(deps: Deps, viewer: Viewer): Promise<Device | null> {
  return viewer.kind === 'device' ? await deps.store.devices.byId(viewer.device) : null;
}

/** A new device, or a new secret and the next epoch for one whose credential is lost (I2). */
export async function registerDevice(
  deps: Deps,
  viewer: Viewer,
  input: { user?: string | null | undefined; deviceId?: string | null | undefined; name?: string | null | undefined },
): Promise<DeviceAnswer> {
  if (viewer.kind === 'device') throw forbidden('a device cannot register devices: the service key or a sign-in can');
  const user = ownerOf(viewer, input.user);
  const id = requireDeviceId(input.deviceId ?? randomBytes(12).toString('base64url'));
  const name = input.name == null ? undefined : requireShort(input.name, 'name', 64);
  const secret = newSecret();
  return commit(deps, async (tx, tell) => {
    // the user's lock: two registrations cannot both take the last slot
    if (!(await tx.clock.touch([user])).has(user)) throw badInput(`there is no user ${user}`);
    const existing = await tx.devices.lock(id);
    if (existing && existing.user !== user)
      throw new DomainError('CONFLICT', 'this deviceId is taken', { outcome: 'TAKEN' });
    if (!existing || existing.revoked) await requireSlot(deps, tx, user);
    if (existing) {
      await tx.devices.renew(existing, hashOf(secret), name);
      tellDevice(tell, existing, existing.installEpoch + 1, 'STALE_INSTALL');
    } else await tx.devices.insert({ id, user, name: name ?? null, secretHash: hashOf(secret) });
    const device = await requireDeviceOf(tx, id);
    return { device, credential: toCredential(id, secret, device.installEpoch) };
  });
}

function ownerOf(viewer: Exclude<Viewer, DeviceViewer>, user: string | null | undefined): UserId {
  if (viewer.kind === 'service') {
    if (user == null) throw badInput('user is required with the service key by itself');
    return requireUserId(user);
  }
  if (user != null && user !== viewer.user) throw forbidden('only the service key by itself may name another user');
  return viewer.user;
}

async function requireSlot(deps: Deps, tx: Tx, user: UserId): Promise<void> {
  const { maxDevices } = deps.limits;
  if ((await tx.devices.ofUser(user)).length >= maxDevices) throw overLimit('a user', maxDevices, 'devices');
}

async function requireDeviceOf(tx: Tx, id: DeviceId): Promise<StoredDevice> {
  const device = await tx.devices.byId(id);
  if (!device) throw new Error(`device ${id} is gone`);
  return device;
}

/** The next install, unless this install id is the current one already: then the same answer again (I2). */
export async function reinstall(deps: Deps, auth: Authentication, input: { installId: string }): Promise<DeviceAnswer> {
  const { proven } = auth;
  if (proven === null) throw auth.refusal ?? forbidden('only a device can be reinstalled');
  const installId = requireShort(input.installId, 'installId', 64);
  return commit(deps, async (tx, tell) => {
    const before = await tx.devices.lock(proven.device);
    // a new secret may have been given since the credential was looked up
    if (!before || Buffer.compare(before.secretHash, hashOf(proven.secret)) !== 0) throw unknown();
    if (before.revoked) throw refusal('revoked');
    if (before.installId !== installId) {
      if (await tx.devices.wasInstalled(before.id, installId)) throw staleInstall(before.installEpoch);
      await tx.devices.beginInstall(before, installId);
      tellDevice(tell, before, before.installEpoch + 1, 'STALE_INSTALL');
    }
    const device = await requireDeviceOf(tx, before.id);
    return { device, credential: toCredential(device.id, proven.secret, device.installEpoch) };
  });
}

/** Frees the slot; every later request of the device is refused, its sockets are closed (I4, I5). */
export async function revokeDevice(deps: Deps, viewer: Viewer, input: { deviceId: string }): Promise<DeviceAnswer> {
  const id = requireDeviceId(input.deviceId);
  return commit(deps, async (tx, tell) => {
    const device = await tx.devices.lock(id);
    const status = await tx.devices.status(viewer);
    if (status !== 'ok') throw refusal(status);
    if (!device || (viewer.kind !== 'service' && device.user !== viewer.user))
      throw badInput(`there is no device ${id}`);
    if (!device.revoked) {
      await tx.devices.revoke(id);
      tellDevice(tell, device, device.installEpoch + 1, 'REVOKED');
    }
    return { device, credential: null };
  });
}

function tellDevice(tell: Tell, { id, user }: Device, installEpoch: number, reason: 'REVOKED' | 'STALE_INSTALL'): void {
  tell([user], { kind: 'device', device: id, installEpoch, reason });
}
