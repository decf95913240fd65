// Conversations, and a conversation as one viewer sees it: read from the view conv_state, the only definition of unread.
import type { Conv, ConvId, ConvType, DeviceId, JoinPolicy, Seq, UserId } from '../model.js';
import { asOf } from './as-of.js';
import { none, row, rows, rowsInOrder, sql, type Db } from './sql.js';

/** Who looks: `delivered` is of this device in this install, 0 without one (I3). */
export interface Look {
  readonly user: UserId;
  readonly device: DeviceId | null;
  readonly installEpoch: number;
}

export interface ConvsQuery {
  readonly first: number;
  readonly orderBy: 'ACTIVITY' | 'ID';
  readonly after: { readonly id: ConvId; readonly activeAt: Date } | null;
  readonly unreadOnly: boolean;
  readonly lagging: boolean;
  readonly includeLeft: boolean;
}

export interface NewConv {
  readonly id: ConvId;
  readonly type: ConvType;
  readonly title: string | null;
  readonly joinPolicy: JoinPolicy;
  readonly historyVisible: boolean;
  /** of a DIRECT conversation: its two users in byte order */
  readonly direct: readonly [UserId, UserId] | null;
}

// The cursor as a sub-select: a join on device_cursors turns quadratic under a generic plan.
export const state = sql`s.conv_id AS id, s.type, s.title, s.peer_id AS peer, s.join_policy AS "joinPolicy",
  s.history_visible AS "historyVisible", s.mode, s.info_version AS "infoVersion", s.epoch, s.head, s.min_seq AS "minSeq",
  s.read_seq AS read, s.unread, s.joined, s.muted, CASE WHEN s.joined THEN s.role END AS role, s.active_at AS "activeAt",
  s.notice, s.avatar_url AS "avatarUrl", s.all_muted AS "allMuted", s.banned, s.silenced_until AS "silencedUntil", s.nickname`;

export const conversations = (db: Db) => ({
  /** One snapshot for all: null where the user never was a member. In the order asked. */
  async seen(keys: readonly (Look & { readonly conv: ConvId })[]): Promise<(Conv | null)[]> {
    return rowsInOrder<Conv>(
      db,
      keys,
      sql`/* conversations.seen */
        SELECT k.ord, ${state}, coalesce((SELECT d.delivered_seq FROM device_cursors d
                 WHERE d.device_id = k.device AND d.conv_id = s.conv_id AND d.install_epoch = k.epoch), 0) AS delivered
          FROM unnest(${keys.map((k) => k.user)}::text[], ${keys.map((k) => k.conv)}::uuid[], ${keys.map((k) => k.device)}::text[],
                      ${keys.map((k) => k.installEpoch)}::int[]) WITH ORDINALITY AS k(user_id, conv_id, device, epoch, ord)
          JOIN conv_state s ON s.user_id = k.user_id AND s.conv_id = k.conv_id`,
    );
  },

  /** The conversation as nobody in particular sees it: for the service key by itself. */
  async unseen(conv: ConvId): Promise<Conv | null> {
    const [found] = await rows<Conv>(
      db,
      sql`/* conversations.unseen */
        SELECT id, type, title, NULL AS peer, join_policy AS "joinPolicy", history_visible AS "historyVisible", mode,
               info_version AS "infoVersion", epoch, head, min_seq AS "minSeq", 0 AS delivered, 0 AS read, 0 AS unread,
               false AS joined, false AS muted, NULL AS role, head_at AS "activeAt",
               notice, avatar_url AS "avatarUrl", all_muted AS "allMuted", banned, NULL AS "silencedUntil", NULL AS nickname
          FROM conversations WHERE id = ${conv}::uuid`,
    );
    return found ?? null;
  },

  /** One page of a user's conversations, one snapshot (U3). Asks for one more than `first`, to tell whether there are more. */
  async page(look: Look, q: ConvsQuery): Promise<{ convs: Conv[]; asOf: string }> {
    const order = q.orderBy === 'ID' ? sql`s.conv_id` : sql`s.active_at DESC, s.conv_id DESC`;
    const after =
      q.after === null
        ? none
        : q.orderBy === 'ID'
          ? sql`AND s.conv_id > ${q.after.id}::uuid`
          : sql`AND (s.active_at, s.conv_id) < (${q.after.activeAt}, ${q.after.id}::uuid)`;
    const found = await rows<Conv & { asOf: string; ord: number | null }>(
      db,
      sql`/* conversations.page */
        SELECT ${asOf}, p.* FROM (SELECT) one LEFT JOIN (
          SELECT * FROM (
            SELECT row_number() OVER (ORDER BY ${order}) AS ord, s.*
              FROM (SELECT ${state}, s.conv_id, s.active_at,
                           coalesce((SELECT d.delivered_seq FROM device_cursors d WHERE d.device_id = ${look.device}::text
                              AND d.conv_id = s.conv_id AND d.install_epoch = ${look.installEpoch}), 0) AS delivered
                      FROM conv_state s WHERE s.user_id = ${look.user}) s
             WHERE (s.joined OR ${q.includeLeft}) ${q.unreadOnly ? sql`AND s.unread > 0` : none}
                   ${q.lagging ? sql`AND s.delivered < s.head` : none} ${after}
          ) t WHERE ord <= ${q.first + 1}
        ) p ON true ORDER BY p.ord`,
    );
    const asOfText = found[0]?.asOf ?? '';
    return { convs: found.filter(({ ord }) => ord !== null), asOf: asOfText };
  },

  async insert(conv: NewConv): Promise<void> {
    await db.conversation.create({
      data: {
        id: conv.id,
        type: conv.type,
        title: conv.title,
        joinPolicy: conv.joinPolicy,
        historyVisible: conv.historyVisible,
        directLow: conv.direct?.[0] ?? null,
        directHigh: conv.direct?.[1] ?? null,
      },
    });
  },

  async findDirect([low, high]: readonly [UserId, UserId]): Promise<ConvId | null> {
    const found = await db.conversation.findUnique({
      where: { directLow_directHigh: { directLow: low, directHigh: high } },
      select: { id: true },
    });
    return (found?.id ?? null) as ConvId | null;
  },

  /** What this user's clientId made before (L3). */
  async madeWith(user: UserId, clientId: string): Promise<{ conv: ConvId; fingerprint: Uint8Array } | null> {
    const found = await db.convKey.findUnique({ where: { userId_clientId: { userId: user, clientId } } });
    return found && { conv: found.convId as ConvId, fingerprint: found.fingerprint };
  },

  async rememberKey(user: UserId, clientId: string, conv: ConvId, fingerprint: Uint8Array<ArrayBuffer>): Promise<void> {
    await db.convKey.create({ data: { userId: user, clientId, convId: conv, fingerprint } });
  },

  /** Raises the retention floor (logic); commit before pruning (L7). */
  async raiseFloor(conv: ConvId, minSeq: Seq): Promise<boolean> {
    const { raised } = await row<{ raised: boolean }>(
      db,
      sql`/* conversations.raiseFloor */ SELECT raise_floor(${conv}::uuid, ${minSeq}::bigint) AS raised`,
    );
    return raised;
  },

  /** Removes at most `limit` rows below the floor (space); answers how many. */
  async prune(conv: ConvId, limit: number): Promise<number> {
    const { pruned } = await row<{ pruned: number }>(
      db,
      sql`/* conversations.prune */ SELECT prune(${conv}::uuid, ${limit}::int) AS pruned`,
    );
    return pruned;
  },
});
