// Delivery cursors: what a device durably holds, one row per (device, conversation), tied to an install (D1, I3).
import type { ConvId, DeviceViewer, Seq } from '../model.js';
import { row, rows, sql, type Db } from './sql.js';

export interface Acked {
  /** 'ok' or why not; see refusal() */
  readonly status: string;
  readonly delivered: Seq;
  readonly head: Seq;
}

export const delivery = (db: Db) => ({
  /**
   * One statement merges by maximum within the install, overwrites an older install's row, and acts only where the device's
   * epoch is the presented one; the device is looked at again after any wait for the row, so that an ack that a reinstall has
   * overtaken is refused (I3; what it wrote is of the old install, which no reader sees). A former member's seq is lowered to
   * the end of their last period (D2).
   */
  async ack(viewer: DeviceViewer, conv: ConvId, seq: Seq): Promise<Acked> {
    const [moved] = await rows<Acked>(
      db,
      sql`/* delivery.ack */
        INSERT INTO device_cursors AS t (device_id, conv_id, install_epoch, delivered_seq)
        SELECT d.id, c.id, d.install_epoch, least(${seq}::bigint, m.to_seq)
          FROM devices d JOIN members m ON m.user_id = d.user_id AND m.conv_id = ${conv}::uuid
          JOIN conversations c ON c.id = m.conv_id
         WHERE d.id = ${viewer.device} AND d.install_epoch = ${viewer.installEpoch}::int AND d.revoked_at IS NULL
           AND (m.to_seq IS NOT NULL OR ${seq}::bigint <= c.head)
        ON CONFLICT (device_id, conv_id) DO UPDATE
           SET install_epoch = excluded.install_epoch, delivered_seq = excluded.delivered_seq
         WHERE (t.install_epoch, t.delivered_seq) < (excluded.install_epoch, excluded.delivered_seq)
        RETURNING device_status(${viewer.device}, ${viewer.installEpoch}::int) AS status, t.delivered_seq AS delivered,
          (SELECT coalesce(m.to_seq, c.head) FROM members m JOIN conversations c ON c.id = m.conv_id
            WHERE m.user_id = ${viewer.user} AND m.conv_id = ${conv}::uuid) AS head`,
    );
    return moved ?? this.why(viewer, conv, seq);
  },

  /** Why an ack moved nothing: a refusal, or the kept value of an equal or later one. */
  async why(viewer: DeviceViewer, conv: ConvId, seq: Seq): Promise<Acked> {
    return row<Acked>(
      db,
      sql`/* delivery.why */
        SELECT CASE WHEN q.device <> 'ok' THEN q.device WHEN m.user_id IS NULL THEN 'not_member'
                    WHEN m.to_seq IS NULL AND ${seq}::bigint > c.head THEN 'cursor_ahead' ELSE 'ok' END AS status,
               coalesce(m.to_seq, c.head, 0) AS head, coalesce(t.delivered_seq, 0) AS delivered
          FROM (SELECT device_status(${viewer.device}, ${viewer.installEpoch}::int) AS device) q
          LEFT JOIN members m ON m.user_id = ${viewer.user} AND m.conv_id = ${conv}::uuid
          LEFT JOIN conversations c ON c.id = m.conv_id
          LEFT JOIN device_cursors t ON t.device_id = ${viewer.device} AND t.conv_id = c.id
                                    AND t.install_epoch = ${viewer.installEpoch}::int`,
    );
  },
});
