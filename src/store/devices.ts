// Devices: one installation slot of a user each; only the hash of the secret is kept (I1).
import type { Device, DeviceId, UserId, Viewer } from '../model.js';
import { deviceOf } from '../model.js';
import { row, rows, sql, type Db } from './sql.js';

/** A device with what only the server may know. */
export interface StoredDevice extends Device {
  readonly secretHash: Uint8Array;
  readonly installId: string | null;
  readonly revoked: boolean;
}

const columns = sql`id, user_id AS user, name, install_epoch AS "installEpoch", last_seen_at AS "lastSeenAt",
  secret_hash AS "secretHash", install_id AS "installId", revoked_at IS NOT NULL AS revoked`;

export const devices = (db: Db) => ({
  async byId(id: DeviceId): Promise<StoredDevice | null> {
    const [found] = await rows<StoredDevice>(
      db,
      sql`/* devices.byId */ SELECT ${columns} FROM devices WHERE id = ${id}`,
    );
    return found ?? null;
  },

  /** The same, holding the row's lock: for what changes the install. */
  async lock(id: DeviceId): Promise<StoredDevice | null> {
    const [found] = await rows<StoredDevice>(
      db,
      sql`/* devices.lock */ SELECT ${columns} FROM devices WHERE id = ${id} FOR NO KEY UPDATE`,
    );
    return found ?? null;
  },

  /** The user's devices that hold a slot, oldest first. */
  async ofUser(user: UserId): Promise<Device[]> {
    return rows<Device>(
      db,
      sql`/* devices.ofUser */
        SELECT id, user_id AS user, name, install_epoch AS "installEpoch", last_seen_at AS "lastSeenAt"
          FROM devices WHERE user_id = ${user} AND revoked_at IS NULL ORDER BY created_at, id`,
    );
  },

  async insert(device: {
    id: DeviceId;
    user: UserId;
    name: string | null;
    secretHash: Uint8Array<ArrayBuffer>;
  }): Promise<void> {
    const { id, user, name, secretHash } = device;
    await db.device.create({ data: { id, userId: user, name, secretHash } });
  },

  /** A new secret and the next epoch, for a device whose credential is lost (I2) or that comes back after a revocation. */
  async renew(device: StoredDevice, secretHash: Uint8Array<ArrayBuffer>, name: string | undefined): Promise<void> {
    await this.spendInstall(device);
    await db.device.update({
      where: { id: device.id },
      data: {
        secretHash,
        installEpoch: { increment: 1 },
        installId: null,
        revokedAt: null,
        ...(name === undefined ? {} : { name }),
      },
    });
  },

  /** The next install begins: the old install id is spent, the old cursors go. */
  async beginInstall(device: StoredDevice, installId: string): Promise<void> {
    await this.spendInstall(device);
    await db.device.update({ where: { id: device.id }, data: { installId, installEpoch: { increment: 1 } } });
    await db.deviceCursor.deleteMany({ where: { deviceId: device.id, installEpoch: { lte: device.installEpoch } } });
  },

  /** An install that is over stays known by its id (I2). */
  async spendInstall({ id, installId }: StoredDevice): Promise<void> {
    if (installId !== null) await db.usedInstallId.create({ data: { deviceId: id, installId } });
  },

  async wasInstalled(id: DeviceId, installId: string): Promise<boolean> {
    return (await db.usedInstallId.count({ where: { deviceId: id, installId } })) > 0;
  },

  async revoke(id: DeviceId): Promise<void> {
    await db.device.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: new Date() } });
  },

  async seen(id: DeviceId): Promise<void> {
    await rows(
      db,
      sql`/* devices.seen */ WITH seen AS (UPDATE devices SET last_seen_at = now() WHERE id = ${id} RETURNING 1) SELECT 1 AS done FROM seen`,
    );
  },

  /** 'ok', or why this viewer's writes are refused from now on (I3, I5). Ask after the last wait for a lock. */
  async status(viewer: Viewer): Promise<string> {
    const device = deviceOf(viewer);
    if (device === null) return 'ok';
    const { status } = await row<{ status: string }>(
      db,
      sql`/* devices.status */ SELECT device_status(${device.device}, ${device.installEpoch}::int) AS status`,
    );
    return status;
  },

  /** Of these connected devices, those whose credential holds no more, with the epoch that holds now (I4). */
  async outdated(
    connected: readonly { readonly device: DeviceId; readonly installEpoch: number }[],
  ): Promise<{ device: DeviceId; installEpoch: number; revoked: boolean }[]> {
    return rows(
      db,
      sql`/* devices.outdated */
        SELECT d.id AS device, d.install_epoch AS "installEpoch", d.revoked_at IS NOT NULL AS revoked
          FROM unnest(${connected.map((c) => c.device)}::text[], ${connected.map((c) => c.installEpoch)}::int[]) AS k(id, epoch)
          JOIN devices d ON d.id = k.id WHERE d.revoked_at IS NOT NULL OR d.install_epoch <> k.epoch`,
    );
  },
});
