// The only giver of seq (L1, L2) and of change numbers (C2). Whoever appends holds the conversation's lock first; lock order
// everywhere: conversations by id, then users by id, then members, then events (M5).
import type { ConvId, ConvType, EventKind, EventVia, JoinPolicy, JsonObject, Seq, UserId } from '../model.js';
import { row, rows, sql, type Db } from './sql.js';

/** A conversation whose row lock this transaction holds, as it is now. */
export interface LockedConv {
  readonly id: ConvId;
  readonly type: ConvType;
  readonly joinPolicy: JoinPolicy;
  readonly historyVisible: boolean;
  readonly head: Seq;
  readonly memberCount: number;
  readonly dissolved: boolean;
}

export interface SystemEvent {
  readonly kind: Exclude<EventKind, 'MESSAGE' | 'RECALL'>;
  readonly contentType: string;
  readonly sender: UserId | null;
  readonly via: EventVia;
  readonly content: JsonObject | null;
}

export const clock = (db: Db) => ({
  /** Waits for the row lock; null when there is no such conversation. What is read after this is fresh (M5). */
  async lock(conv: ConvId): Promise<LockedConv | null> {
    const [found] = await rows<LockedConv>(
      db,
      sql`/* clock.lock */
        SELECT id, type, join_policy AS "joinPolicy", history_visible AS "historyVisible", head, member_count AS "memberCount",
               dissolved_seq IS NOT NULL AS dissolved
          FROM conversations WHERE id = ${conv}::uuid FOR NO KEY UPDATE`,
    );
    return found ?? null;
  },

  /** Locks these users in the order of their ids; answers those that exist. */
  async lockUsers(users: readonly UserId[]): Promise<Set<UserId>> {
    const found = await rows<{ id: UserId }>(
      db,
      sql`/* clock.lockUsers */ SELECT id FROM users WHERE id = ANY (${[...users]}::text[]) ORDER BY id FOR NO KEY UPDATE`,
    );
    return new Set(found.map(({ id }) => id));
  },

  /**
   * Locks these users in the order of their ids and draws a change number for each that exists: good for one row of that
   * user, so that every number names one change (C2).
   */
  async touch(users: readonly UserId[]): Promise<Map<UserId, number>> {
    const found = await rows<{ id: UserId; change: number }>(
      db,
      sql`/* clock.touch */ SELECT id, change FROM touch_users(${[...users]}::text[])`,
    );
    return new Map(found.map(({ id, change }) => [id, change]));
  },

  /** Appends a system event that does not count as unread; answers its seq. */
  async append(conv: ConvId, event: SystemEvent): Promise<Seq> {
    const content = event.content === null ? null : JSON.stringify(event.content);
    const { seq } = await row<{ seq: Seq }>(
      db,
      sql`/* clock.append */
        SELECT append_event(${conv}::uuid, ${event.kind}::event_kind, ${event.contentType}, ${event.sender}::text,
                            ${event.via}::event_via, false, ${content}::jsonb, NULL) AS seq`,
    );
    return seq;
  },
});
