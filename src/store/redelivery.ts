// What the redelivery scan asks (H5): a few statements for all online devices and users of a node, whatever their number.
import type {
  ChangeAbout,
  ConvId,
  ConvType,
  DeviceId,
  DeviceViewer,
  EventKind,
  RequestState,
  Seq,
  UserId,
} from '../model.js';
import { toMoment } from './as-of.js';
import { rows, sql, type Db } from './sql.js';

/** The event that a message hint speaks of. */
export interface HintedEvent {
  readonly seq: Seq;
  readonly eventKind: EventKind;
  readonly contentType: string;
  readonly sender: UserId | null;
  readonly target: Seq | null;
}
interface Place {
  readonly conv: ConvId;
  readonly conversationType: ConvType;
  readonly head: Seq;
}
/** A device that lacks what is visible up to head; the event is the one at head. */
export type Lagging = Place & HintedEvent & { readonly device: DeviceId };
/** A changed row of the user's own state as it is now, with the event that began or ended the membership if it is recent. */
export type ChangedConv = Place & {
  readonly user: UserId;
  readonly change: number;
  readonly read: Seq;
  readonly unread: number;
  readonly event: HintedEvent | null;
};

/** A changed row that is of no conversation. `state`: of a request; null of a contact, and of what is no longer shown. */
export interface ChangedRow {
  readonly user: UserId;
  readonly change: number;
  readonly about: ChangeAbout;
  readonly state: RequestState | null;
}

const eventColumns = sql`e.seq, e.kind AS "eventKind", e.content_type AS "contentType", e.sender_id AS sender,
  e.target_seq AS target`;
const ago = (ms: number) => sql`now() - ${ms}::double precision * interval '1 millisecond'`;

/**
 * `mine`: who can see which of the conversations whose head moved of late, up to where. No index is on head_at, for then a send
 * would be no HOT update any more: one look at all conversations (25 to 100 ms for 300,000 of them), and from the few that
 * moved to their members by index. The other way, from each online device to its conversations, costs a look-up for each of
 * them: 3 s for 2,000 devices with 200 conversations each, where this way takes 0.1 to 0.2 s. The fences (MATERIALIZED, OFFSET 0)
 * keep the planner on it, whose statistics know nothing of the last minute.
 */
const movedOfLate = (windowMs: number) => sql`
  moved AS MATERIALIZED (SELECT id, type, head FROM conversations WHERE head_at > ${ago(windowMs)}),
  mine AS MATERIALIZED (
    SELECT c.id, c.type, m.user_id, m.to_seq, coalesce(m.to_seq, c.head) AS head FROM moved c
     CROSS JOIN LATERAL (SELECT user_id, to_seq FROM members WHERE conv_id = c.id OFFSET 0) m)`;

export const redelivery = (db: Db) => ({
  /**
   * Of these devices those that lack, for longer than `graceMs`, something of a conversation whose head moved within `windowMs`,
   * once for each such conversation. Where a device has never acked in this install it is not waited for.
   */
  async lagging(devices: readonly DeviceViewer[], windowMs: number, graceMs: number): Promise<Lagging[]> {
    return rows<Lagging>(
      db,
      sql`/* redelivery.lagging */
        WITH online AS MATERIALIZED (
          SELECT * FROM unnest(${devices.map((d) => d.device)}::text[], ${devices.map((d) => d.user)}::text[],
                               ${devices.map((d) => d.installEpoch)}::int[]) AS k(device, user_id, epoch)),
        ${movedOfLate(windowMs)}
        SELECT k.device, c.id AS conv, c.type AS "conversationType", c.head, ${eventColumns}
          FROM mine c JOIN online k ON k.user_id = c.user_id
         CROSS JOIN LATERAL (SELECT t.delivered_seq FROM device_cursors t WHERE t.device_id = k.device AND t.conv_id = c.id
                                AND t.install_epoch = k.epoch AND t.delivered_seq < c.head OFFSET 0) t
         CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.conv_id = c.id AND e.seq = c.head OFFSET 0) e
         WHERE NOT coalesce((SELECT f.at > ${ago(graceMs)} FROM events f
                              WHERE f.conv_id = c.id AND f.seq = t.delivered_seq + 1), false)`,
    );
  },

  /** For each user the conversations whose change number is at least `from`, at most `limit` of each user. */
  async changed(
    since: readonly { readonly user: UserId; readonly from: number }[],
    limit: number,
    windowMs: number,
  ): Promise<ChangedConv[]> {
    const found = await rows<Omit<ChangedConv, 'event'> & { [K in keyof HintedEvent]: HintedEvent[K] | null }>(
      db,
      sql`/* redelivery.changed */
        SELECT m.user_id AS user, m.change_no AS change, s.conv_id AS conv, s.type AS "conversationType", s.head,
               s.read_seq AS read, s.unread, ${eventColumns}
          FROM unnest(${since.map((s) => s.user)}::text[], ${since.map((s) => s.from)}::bigint[]) AS k(user_id, change_no)
         CROSS JOIN LATERAL (SELECT * FROM members x WHERE x.user_id = k.user_id AND x.change_no >= k.change_no
                              ORDER BY x.change_no LIMIT ${limit}::int) m
          JOIN conv_state s ON s.user_id = m.user_id AND s.conv_id = m.conv_id
          LEFT JOIN events e ON e.conv_id = m.conv_id AND e.seq = coalesce(m.to_seq, m.joined_seq) AND e.kind = 'MEMBERSHIP'
                            AND e.at > ${ago(windowMs)}`,
    );
    return found.map(({ seq, eventKind, contentType, sender, target, ...conv }) => ({
      ...conv,
      event:
        seq === null || eventKind === null || contentType === null
          ? null
          : { seq, eventKind, contentType, sender, target },
    }));
  },

  /** The same for contacts, contact requests and requests to join: at most `limit` of each user and kind. */
  async changedRows(
    since: readonly { readonly user: UserId; readonly from: number }[],
    limit: number,
  ): Promise<ChangedRow[]> {
    return rows<ChangedRow>(
      db,
      sql`/* redelivery.changedRows */
        SELECT k.user_id AS user, x.change, x.about, x.state
          FROM unnest(${since.map((s) => s.user)}::text[], ${since.map((s) => s.from)}::bigint[]) AS k(user_id, change_no)
         CROSS JOIN LATERAL (
          (SELECT c.change_no AS change, jsonb_build_object('type', 'contact', 'peer', c.peer_id) AS about,
                  NULL::request_state AS state
             FROM contacts c WHERE c.user_id = k.user_id AND c.change_no >= k.change_no ORDER BY 1 LIMIT ${limit}::int)
          UNION ALL
          (SELECT r.from_change_no, jsonb_build_object('type', 'contactRequest', 'from', r.from_id, 'to', r.to_id), r.state
             FROM contact_requests r WHERE r.from_id = k.user_id AND r.from_change_no >= k.change_no
            ORDER BY 1 LIMIT ${limit}::int)
          UNION ALL
          (SELECT r.to_change_no, jsonb_build_object('type', 'contactRequest', 'from', r.from_id, 'to', r.to_id), r.state
             FROM contact_requests r WHERE r.to_id = k.user_id AND r.to_change_no >= k.change_no
            ORDER BY 1 LIMIT ${limit}::int)
          UNION ALL
          (SELECT v.change_no, jsonb_build_object('type', 'joinRequest', 'conv', v.conv_id, 'user', v.user_id),
                  CASE WHEN v.shown THEN r.state END
             FROM join_request_views v JOIN join_requests r ON r.conv_id = v.conv_id AND r.user_id = v.user_id
            WHERE v.viewer_id = k.user_id AND v.change_no >= k.change_no ORDER BY 1 LIMIT ${limit}::int)) x`,
    );
  },

  /** Of these badges those that were computed before the newest message of a conversation whose head moved within `windowMs`. */
  async staleBadges(
    shown: readonly { readonly user: UserId; readonly asOf: string }[],
    windowMs: number,
  ): Promise<UserId[]> {
    const snapshots = shown.map(({ asOf }) => toMoment(asOf)?.snapshot ?? null);
    const found = await rows<{ user: UserId }>(
      db,
      sql`/* redelivery.staleBadges */
        WITH shown AS MATERIALIZED (
          SELECT * FROM unnest(${shown.map(({ user }) => user)}::text[], ${snapshots}::text[]) AS k(user_id, snapshot)),
        ${movedOfLate(windowMs)}
        SELECT DISTINCT k.user_id AS user FROM mine c JOIN shown k ON k.user_id = c.user_id
         CROSS JOIN LATERAL (SELECT e.xid FROM events e WHERE e.conv_id = c.id AND e.seq = c.head OFFSET 0) e
         WHERE c.to_seq IS NULL AND NOT pg_visible_in_snapshot(e.xid, k.snapshot::pg_snapshot)`,
    );
    return found.map(({ user }) => user);
  },
});
