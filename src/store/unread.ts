// Unread as totals and as a list. The number itself is defined once, by the view conv_state (U1, U6).
import type { Badge, ConvId, Seq, UserId } from '../model.js';
import { asOf } from './as-of.js';
import { row, rows, sql, type Db } from './sql.js';

export interface Audit {
  readonly unread: number;
  readonly seqs: Seq[];
  readonly head: Seq;
  readonly read: Seq;
}

export const unread = (db: Db) => ({
  /** Open memberships of undissolved conversations only, muted apart (U5). */
  async badge(user: UserId): Promise<Badge> {
    return row<Badge>(
      db,
      sql`/* unread.badge */
        SELECT ${user} AS user, coalesce(sum(s.unread) FILTER (WHERE NOT s.muted), 0)::bigint AS unread,
               coalesce(sum(s.unread) FILTER (WHERE s.muted), 0)::bigint AS "mutedUnread",
               count(*) FILTER (WHERE NOT s.muted AND s.unread > 0) AS convs, ${asOf}
          FROM conv_state s WHERE s.user_id = ${user} AND s.joined`,
    );
  },

  /** The seqs above `after` that make up the number, and the number, of one snapshot; at most first + 1 of them. */
  async audit(user: UserId, conv: ConvId, after: Seq, first: number): Promise<Audit | null> {
    const [found] = await rows<Omit<Audit, 'seqs'> & { seqs: bigint[] }>(
      db,
      sql`/* unread.audit */
        SELECT s.unread, s.head, s.read_seq AS read,
               ARRAY(SELECT unread_audit(s.user_id, s.conv_id, ${after}::bigint, ${first}::int)) AS seqs
          FROM conv_state s WHERE s.user_id = ${user} AND s.conv_id = ${conv}::uuid`,
    );
    return found === undefined ? null : { ...found, seqs: found.seqs.map(Number) };
  },
});
