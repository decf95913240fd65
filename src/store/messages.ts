// Events: sending, recalling, and reading those that lie in the viewer's own intervals (M1).
import type { Prisma } from '../generated/prisma/client.js';
import { type ConvId, type ConvType, type EventVia, type JsonObject, type LogEvent } from '../model.js';
import { viaOf, type PersonViewer, type Seq, type UserId } from '../model.js';
import { asking, none, row, rows, rowsInOrder, sql, type Db } from './sql.js';

export interface NewMessage {
  readonly conv: ConvId;
  readonly clientId: string;
  readonly contentType: string;
  readonly counts: boolean;
  readonly content: JsonObject;
  readonly fingerprint: Uint8Array;
  readonly quote: Seq | null;
  readonly mentions: readonly UserId[];
  readonly markReadUpTo: Seq | null;
  /** in a direct conversation both must be contacts */
  readonly contactsOnly: boolean;
}

/** What a write to the log came to, decided under the conversation's lock. */
export interface Written {
  /** 'ok', 'duplicate' or 'already', else why not; see refusal() */
  readonly status: string;
  readonly seq: Seq;
  readonly conversationType: ConvType;
  /** who is told one by one; null where nobody is (H7), or nothing was written */
  readonly audience: UserId[] | null;
  /** the conversation's channel is told; null unless something was written */
  readonly channel: boolean | null;
}

/** What is known of a sent event whatever retention has done: below the floor it can no longer be read like any other. */
export interface SentKey {
  readonly seq: Seq;
  readonly createdAt: Date;
  readonly via: EventVia;
  readonly recalled: boolean;
  /** of the recall event, if the sender may see that one */
  readonly recalledBy: Seq | null;
}

export const eventColumns = sql`e.conv_id AS conv, e.seq, e.kind, e.content_type AS "contentType", e.sender_id AS sender,
  e.at AS "createdAt", e.via, e.client_id AS "clientId", e.content, e.quote_seq AS quote, e.mentions, e.target_seq AS target,
  e.recalled_by IS NOT NULL AS recalled, e.seen_recall AS "recalledBy"`;

/** The bounds of a read of one log; `conv`, `after` and so on are SQL expressions. */
interface VisibleRange {
  readonly user: Prisma.Sql;
  readonly conv: Prisma.Sql;
  readonly after: Prisma.Sql;
  readonly before: Prisma.Sql;
  readonly limit: Prisma.Sql;
  readonly newestFirst?: boolean;
}

/**
 * The user's visible events with after < seq < before, at most `limit`. Each period is a range of its own that stops at the
 * limit, so that neither a hidden gap nor the length of the log costs anything. Every read of a log goes through here.
 */
export function visibleEvents({ user, conv, after, before, limit, newestFirst = false }: VisibleRange): Prisma.Sql {
  const direction = newestFirst ? sql`DESC` : none;
  return sql`
    SELECT e.*, (SELECT e.recalled_by FROM periods r WHERE r.conv_id = c.id AND r.user_id = p.user_id
                   AND e.recalled_by >= r.from_seq AND e.recalled_by <= coalesce(r.to_seq, c.head)) AS seen_recall
      FROM conversations c
      JOIN periods p ON p.conv_id = c.id AND p.user_id = ${user}
     CROSS JOIN LATERAL (
       SELECT ev.* FROM events ev
        WHERE ev.conv_id = c.id AND ev.seq >= greatest(p.from_seq, c.min_seq, ${after} + 1)
          AND ev.seq <= least(coalesce(p.to_seq, c.head), ${before} - 1)
        ORDER BY ev.seq ${direction} LIMIT ${limit}) e
     WHERE c.id = ${conv}
     ORDER BY e.seq ${direction} LIMIT ${limit}`;
}

export const messages = (db: Db) => ({
  async send(viewer: PersonViewer, message: NewMessage): Promise<Written & { head: Seq | null }> {
    return row(
      db,
      sql`/* messages.send */
        SELECT status, seq, head, conv_type AS "conversationType", audience, channel
          FROM send_event(${message.conv}::uuid, ${asking(viewer)},
            ${viaOf(viewer)}::event_via, ${message.clientId}, ${message.contentType}, ${message.counts},
            ${JSON.stringify(message.content)}::jsonb, ${message.fingerprint}::bytea, ${message.quote}::bigint,
            ${[...message.mentions]}::text[], ${message.markReadUpTo}::bigint, ${message.contactsOnly})`,
    );
  },

  async recall(viewer: PersonViewer, conv: ConvId, seq: Seq, windowMs: number): Promise<Written> {
    return row(
      db,
      sql`/* messages.recall */
        SELECT status, seq, conv_type AS "conversationType", audience, channel
          FROM recall_event(${conv}::uuid, ${asking(viewer)},
            ${viaOf(viewer)}::event_via, ${seq}::bigint, ${windowMs}::bigint)`,
    );
  },

  /** Single events, each only if this user may see it: null else. In the order asked, one snapshot. */
  async seen(
    keys: readonly { readonly user: UserId; readonly conv: ConvId; readonly seq: Seq }[],
  ): Promise<(LogEvent | null)[]> {
    return rowsInOrder<LogEvent>(
      db,
      keys,
      sql`/* messages.seen */
        SELECT k.ord, ${eventColumns}
          FROM unnest(${keys.map((k) => k.user)}::text[], ${keys.map((k) => k.conv)}::uuid[], ${keys.map((k) => k.seq)}::bigint[])
               WITH ORDINALITY AS k(user_id, conv_id, seq, ord)
         CROSS JOIN LATERAL (${visibleEvents({
           user: sql`k.user_id`,
           conv: sql`k.conv_id`,
           after: sql`k.seq - 1`,
           before: sql`k.seq + 1`,
           limit: sql`1`,
         })}) e`,
    );
  },

  /** One page of the log, in log order; from its newer end when newestFirst. Asks for one more than `limit`. */
  async page(
    user: UserId,
    conv: ConvId,
    range: { readonly after: Seq; readonly before: Seq; readonly limit: number; readonly newestFirst: boolean },
  ): Promise<LogEvent[]> {
    return rows<LogEvent>(
      db,
      sql`/* messages.page */
        SELECT ${eventColumns} FROM (${visibleEvents({
          user: sql`${user}`,
          conv: sql`${conv}::uuid`,
          after: sql`${range.after}::bigint`,
          before: sql`${range.before}::bigint`,
          limit: sql`${range.limit + 1}::int`,
          newestFirst: range.newestFirst,
        })}) e`,
    );
  },

  /** One statement, for pruning moves the key from one table to the other (L3, L7). */
  async sentKey(user: UserId, clientId: string): Promise<SentKey | null> {
    const [found] = await rows<SentKey>(
      db,
      sql`/* messages.sentKey */
        SELECT k.seq, k.at AS "createdAt", k.via, k.recalled_by IS NOT NULL AS recalled,
               CASE WHEN can_see(${user}, k.conv_id, k.recalled_by) THEN k.recalled_by END AS "recalledBy"
          FROM (SELECT conv_id, seq, at, via, recalled_by FROM events WHERE sender_id = ${user} AND client_id = ${clientId}
                UNION ALL
                SELECT conv_id, seq, at, via, recalled_by FROM spent_client_ids
                 WHERE sender_id = ${user} AND client_id = ${clientId}) k`,
    );
    return found ?? null;
  },
});
