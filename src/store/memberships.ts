// Membership periods and settings. Every write here follows the locks of the conversation and of the users (M5).
import type { ConvId, Member, Role, Seq, UserId } from '../model.js';
import { row, rows, sql, type Db } from './sql.js';

export interface Membership {
  readonly user: UserId;
  /** null for a former member */
  readonly role: Role | null;
  readonly joined: boolean;
  readonly nickname: string | null;
  readonly silencedUntil: Date | null;
}

/** How a conversation's hints travel from here on (H7). */
export interface Settled {
  /** this transaction switched it: every member's node must hear of it */
  readonly switched: boolean;
  /** who is told one by one: the members now, at a switch in any case; else nobody in PULL mode */
  readonly users: UserId[];
  /** the conversation's channel is told */
  readonly channel: boolean;
}

export const memberships = (db: Db) => ({
  /** Of these users, those who are or were members. */
  async of(conv: ConvId, users: readonly UserId[]): Promise<Map<UserId, Membership>> {
    const found = await rows<Membership>(
      db,
      sql`/* memberships.of */
        SELECT user_id AS user, CASE WHEN to_seq IS NULL THEN role END AS role, to_seq IS NULL AS joined,
               nickname, silenced_until AS "silencedUntil"
          FROM members WHERE conv_id = ${conv}::uuid AND user_id = ANY (${[...users]}::text[])`,
    );
    return new Map(found.map((membership) => [membership.user, membership]));
  },

  /** Sets the mode that fits the number of members, after every change of it; answers who is told of the change. */
  async settle(
    conv: ConvId,
    { pullAt, bothMs }: { readonly pullAt: number; readonly bothMs: number },
  ): Promise<Settled> {
    return row<Settled>(
      db,
      sql`/* memberships.settle */
        SELECT switched, coalesce(audience, '{}') AS users, channel
          FROM settle_mode(${conv}::uuid, ${pullAt}::int, ${bothMs}::int)`,
    );
  },

  /** Of these users those who are members now, in no particular order; null: all members. */
  async joined(conv: ConvId, among: readonly UserId[] | null): Promise<UserId[]> {
    const found = await rows<{ user: UserId }>(
      db,
      sql`/* memberships.joined */
        SELECT m.user_id AS user FROM members m WHERE m.conv_id = ${conv}::uuid AND m.to_seq IS NULL
           AND (${among === null} OR m.user_id = ANY (${[...(among ?? [])]}::text[]))`,
    );
    return found.map(({ user }) => user);
  },

  /** Begins a period of each at `seq`. None of them may be a member now; all of them were touched in this transaction. */
  async open(conv: ConvId, users: readonly UserId[], role: Role, seq: Seq): Promise<void> {
    await rows(
      db,
      sql`/* memberships.open */
        SELECT 1 AS done FROM (SELECT open_periods(${conv}::uuid, ${[...users]}::text[], ${role}::role, ${seq}::bigint)) done`,
    );
  },

  /** Ends the period of each at `seq`, the last event they see (M2). All of them are members, and were touched. */
  async close(conv: ConvId, users: readonly UserId[], seq: Seq): Promise<void> {
    await rows(
      db,
      sql`/* memberships.close */
        SELECT 1 AS done FROM (SELECT close_periods(${conv}::uuid, ${[...users]}::text[], ${seq}::bigint)) done`,
    );
  },

  /**
   * One page of the members now, by user id; asks for one more than `first`. Empty unless `viewer` is one of them in the same
   * snapshot; null: nobody in particular looks.
   */
  async page(conv: ConvId, viewer: UserId | null, after: UserId | null, first: number): Promise<Member[]> {
    return rows<Member>(
      db,
      sql`/* memberships.page */
        SELECT user_id AS user, role, nickname, silenced_until AS "silencedUntil" FROM members
         WHERE conv_id = ${conv}::uuid AND to_seq IS NULL AND user_id > ${after ?? ''}
           AND (${viewer}::text IS NULL OR EXISTS (
             SELECT FROM members me WHERE me.user_id = ${viewer} AND me.conv_id = ${conv}::uuid AND me.to_seq IS NULL))
           AND NOT EXISTS (SELECT FROM conversations c WHERE c.id = ${conv}::uuid AND c.dissolved_seq IS NOT NULL)
         ORDER BY user_id LIMIT ${first + 1}::int`,
    );
  },

  /** Sets the viewer's own mute; answers whether it changed. The user was touched in this transaction. */
  async setMuted(user: UserId, conv: ConvId, muted: boolean): Promise<boolean> {
    const { changed } = await row<{ changed: number }>(
      db,
      sql`/* memberships.setMuted */
        WITH changed AS (
          UPDATE members m SET muted = ${muted}, change_no = u.change_no FROM users u
           WHERE u.id = m.user_id AND m.user_id = ${user} AND m.conv_id = ${conv}::uuid AND m.muted <> ${muted} RETURNING 1)
        SELECT count(*) AS changed FROM changed`,
    );
    return changed === 1;
  },
});
