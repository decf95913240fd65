// The facts of a group, its pins, and what single members may do. Every write follows the conversation's lock; one to a member's
// row also follows the user's, whose number was drawn in this transaction (M5, C2).
import type { ConvId, ConvType, JoinPolicy, LogEvent, Role, Seq, UserId } from '../model.js';
import { eventColumns, visibleEvents } from './messages.js';
import { row, rows, sql, type Db, type Sql } from './sql.js';

/** What is true of the whole conversation (C4). */
export interface GroupFacts {
  readonly title: string | null;
  readonly notice: string | null;
  readonly avatarUrl: string | null;
  readonly joinPolicy: JoinPolicy;
  readonly historyVisible: boolean;
  readonly allMuted: boolean;
  readonly banned: boolean;
}

/** Changes one member's row, under the number that was drawn for it. */
const updateMember = (conv: ConvId, user: UserId, set: Sql) => sql`
  UPDATE members m SET ${set}, change_no = u.change_no FROM users u
   WHERE u.id = m.user_id AND m.user_id = ${user} AND m.conv_id = ${conv}::uuid`;

export const groups = (db: Db) => ({
  async facts(conv: ConvId): Promise<GroupFacts> {
    return row<GroupFacts>(
      db,
      sql`/* groups.facts */
        SELECT title, notice, avatar_url AS "avatarUrl", join_policy AS "joinPolicy", history_visible AS "historyVisible",
               all_muted AS "allMuted", banned FROM conversations WHERE id = ${conv}::uuid`,
    );
  },

  async setFacts(conv: ConvId, facts: GroupFacts): Promise<void> {
    await db.conversation.update({ where: { id: conv }, data: facts, select: { id: true } });
  },

  /** What members know of the whole has changed (C4). */
  async raiseInfoVersion(conv: ConvId): Promise<void> {
    await db.conversation.update({
      where: { id: conv },
      data: { infoVersion: { increment: 1 } },
      select: { id: true },
    });
  },

  async countAdmins(conv: ConvId): Promise<number> {
    return db.member.count({ where: { convId: conv, toSeq: null, role: 'ADMIN' } });
  },

  async owner(conv: ConvId): Promise<UserId> {
    const found = await db.member.findFirstOrThrow({
      where: { convId: conv, toSeq: null, role: 'OWNER' },
      select: { userId: true },
    });
    return found.userId as UserId;
  },

  /** Owner and admins now. */
  async leaders(conv: ConvId): Promise<UserId[]> {
    const where = { convId: conv, toSeq: null, role: { in: ['OWNER' as const, 'ADMIN' as const] } };
    const found = await db.member.findMany({ where, select: { userId: true }, orderBy: { userId: 'asc' } });
    return found.map(({ userId }) => userId as UserId);
  },

  /** Whoever leads is not silenced. */
  async setRole(conv: ConvId, user: UserId, role: Role): Promise<void> {
    const silenced = sql`CASE WHEN ${role} = 'MEMBER' THEN m.silenced_until END`;
    await rows(
      db,
      sql`/* groups.setRole */ ${updateMember(conv, user, sql`role = ${role}::role, silenced_until = ${silenced}`)}`,
    );
  },

  /** Null: may send again. */
  async silence(conv: ConvId, user: UserId, until: Date | null): Promise<void> {
    await rows(db, sql`/* groups.silence */ ${updateMember(conv, user, sql`silenced_until = ${until}::timestamptz`)}`);
  },

  async setNickname(conv: ConvId, user: UserId, nickname: string | null): Promise<void> {
    await rows(db, sql`/* groups.setNickname */ ${updateMember(conv, user, sql`nickname = ${nickname}::text`)}`);
  },

  async pins(conv: ConvId): Promise<Seq[]> {
    const found = await db.pin.findMany({ where: { convId: conv }, orderBy: [{ pinnedAt: 'desc' }, { seq: 'desc' }] });
    return found.map(({ seq }) => Number(seq));
  },

  /** A message that is there, not recalled, and visible to this user; null: nobody in particular. */
  async isPinnable(conv: ConvId, seq: Seq, user: UserId | null): Promise<boolean> {
    const { pinnable } = await row<{ pinnable: boolean }>(
      db,
      sql`/* groups.isPinnable */
        SELECT EXISTS (
          SELECT FROM events e JOIN conversations c ON c.id = e.conv_id
           WHERE e.conv_id = ${conv}::uuid AND e.seq = ${seq}::bigint AND e.seq >= c.min_seq AND e.kind = 'MESSAGE'
             AND e.recalled_by IS NULL AND (${user}::text IS NULL OR can_see(${user}, e.conv_id, e.seq))) AS pinnable`,
    );
    return pinnable;
  },

  async pin(conv: ConvId, seq: Seq): Promise<void> {
    await db.pin.create({ data: { convId: conv, seq } });
  },

  async unpin(conv: ConvId, seq: Seq): Promise<void> {
    await db.pin.deleteMany({ where: { convId: conv, seq } });
  },

  /** The pinned events that each of these may see, newest pin first (M1, L5). */
  async pinsSeen(keys: readonly { readonly user: UserId; readonly conv: ConvId }[]): Promise<LogEvent[][]> {
    const found = await rows<LogEvent & { ord: number }>(
      db,
      sql`/* groups.pinsSeen */
        SELECT k.ord, ${eventColumns}
          FROM unnest(${keys.map((k) => k.user)}::text[], ${keys.map((k) => k.conv)}::uuid[]) WITH ORDINALITY AS k(u, c, ord)
          JOIN pins pin ON pin.conv_id = k.c
         CROSS JOIN LATERAL (${visibleEvents({
           user: sql`k.u`,
           conv: sql`k.c`,
           after: sql`pin.seq - 1`,
           before: sql`pin.seq + 1`,
           limit: sql`1`,
         })}) e
         ORDER BY pin.pinned_at DESC, pin.seq DESC`,
    );
    return keys.map((_, index) => found.filter(({ ord }) => ord === index + 1).map(({ ord: _ord, ...event }) => event));
  },

  /** Ends every membership at this event (C4). */
  async dissolve(conv: ConvId, seq: Seq): Promise<void> {
    await db.conversation.update({ where: { id: conv }, data: { dissolvedSeq: seq }, select: { id: true } });
  },

  /** One conversation whose dissolving is not written in every member's row yet. */
  async dissolving(): Promise<{ readonly id: ConvId; readonly type: ConvType } | null> {
    const [found] = await rows<{ id: ConvId; type: ConvType }>(
      db,
      sql`/* groups.dissolving */
        SELECT id, type FROM conversations WHERE dissolved_seq IS NOT NULL AND member_count > 0 ORDER BY id LIMIT 1`,
    );
    return found ?? null;
  },

  /** Writes it in some of them; answers whose, with their numbers. */
  async closeDissolved(conv: ConvId, limit: number): Promise<Map<UserId, number>> {
    const found = await rows<{ id: UserId; change: number }>(
      db,
      sql`/* groups.closeDissolved */ SELECT id, change FROM close_dissolved(${conv}::uuid, ${limit}::int)`,
    );
    return new Map(found.map(({ id, change }) => [id, change]));
  },
});
