// Pages of several logs in one statement, for devices that catch up (S1, S2).
import type { ConvId, LogEvent, Seq, UserId } from '../model.js';
import { eventColumns, visibleEvents } from './messages.js';
import { rows, sql, type Db } from './sql.js';

export interface SyncPart {
  readonly conv: ConvId;
  readonly after: Seq;
  readonly limit: number;
}

export const sync = (db: Db) => ({
  /** For each part its visible events with seq > after, ascending, at most limit + 1 to tell whether there are more. */
  async parts(user: UserId, parts: readonly SyncPart[]): Promise<LogEvent[][]> {
    const found = await rows<LogEvent & { ord: number }>(
      db,
      sql`/* sync.parts */
        SELECT k.ord, ${eventColumns}
          FROM unnest(${parts.map((p) => p.conv)}::uuid[], ${parts.map((p) => p.after)}::bigint[],
                      ${parts.map((p) => p.limit + 1)}::int[]) WITH ORDINALITY AS k(conv_id, after, lim, ord)
         CROSS JOIN LATERAL (${visibleEvents({
           user: sql`${user}`,
           conv: sql`k.conv_id`,
           after: sql`k.after`,
           before: sql`9223372036854775807`,
           limit: sql`k.lim`,
         })}) e
         ORDER BY k.ord, e.seq`,
    );
    const pages = parts.map((): LogEvent[] => []);
    for (const { ord, ...event } of found) pages[ord - 1]?.push(event);
    return pages;
  },

  /** Which of these (conv, after) lost events that the user could have seen: a visible interval meets (after, minSeq) (S3). */
  async trimmed(user: UserId, asked: readonly { readonly conv: ConvId; readonly after: Seq }[]): Promise<boolean[]> {
    const found = await rows<{ ord: number }>(
      db,
      sql`/* sync.trimmed */
        SELECT k.ord FROM unnest(${asked.map((a) => a.conv)}::uuid[], ${asked.map((a) => a.after)}::bigint[])
               WITH ORDINALITY AS k(conv_id, after, ord)
          JOIN conversations c ON c.id = k.conv_id AND k.after < c.min_seq - 1
         WHERE EXISTS (SELECT FROM periods p WHERE p.user_id = ${user} AND p.conv_id = c.id
                          AND p.from_seq < c.min_seq AND coalesce(p.to_seq, c.head) > k.after)`,
    );
    const hit = new Set(found.map(({ ord }) => ord));
    return asked.map((_, index) => hit.has(index + 1));
  },
});
