// Who needs and who may hear the channels of conversations in PULL mode (H7).
import type { ConvId, Seq, UserId } from '../model.js';
import { rows, sql, type Db } from './sql.js';

export const channels = (db: Db) => ({
  /** The conversations in PULL mode that each of these users is a member of. */
  async of(users: readonly UserId[]): Promise<Map<UserId, ConvId[]>> {
    const found = await rows<{ user: UserId; convs: ConvId[] }>(
      db,
      sql`/* channels.of */
        SELECT m.user_id AS user, array_agg(m.conv_id) AS convs FROM members m JOIN conversations c ON c.id = m.conv_id
         WHERE m.user_id = ANY (${[...users]}::text[]) AND m.to_seq IS NULL AND c.mode = 'PULL'
         GROUP BY m.user_id`,
    );
    return new Map(found.map(({ user, convs }) => [user, convs]));
  },

  /** Those of these users who are members of a conversation that was switched just now: its hints still go both ways. */
  async switched(users: readonly UserId[]): Promise<UserId[]> {
    const found = await rows<{ user: UserId }>(
      db,
      sql`/* channels.switched */
        SELECT DISTINCT m.user_id AS user FROM conversations c JOIN members m ON m.conv_id = c.id
         WHERE c.both_until > now() AND m.to_seq IS NULL AND m.user_id = ANY (${[...users]}::text[])`,
    );
    return found.map(({ user }) => user);
  },

  /** Those of these users who may see this event: it lies in one of their periods (M1, M2). */
  async mayHear(conv: ConvId, seq: Seq, users: readonly UserId[]): Promise<UserId[]> {
    const found = await rows<{ user: UserId }>(
      db,
      sql`/* channels.mayHear */
        SELECT u.id AS user FROM unnest(${[...users]}::text[]) u(id)
         WHERE EXISTS (SELECT FROM periods p
                        WHERE p.conv_id = ${conv}::uuid AND p.user_id = u.id
                          AND p.from_seq <= ${seq}::bigint AND (p.to_seq IS NULL OR p.to_seq >= ${seq}::bigint))`,
    );
    return found.map(({ user }) => user);
  },
});
