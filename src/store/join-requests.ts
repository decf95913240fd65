// Requests to join a group, and who is shown them. Every write follows the locks of the conversation and of the viewers whose
// rows it changes; each row has a number of its own (C2).
import type { ConvId, JoinRequest, RequestState, UserId } from '../model.js';
import type { Drawn } from './contacts.js';
import { none, rows, rowsInOrder, sql, type Db } from './sql.js';

export const joinRequestColumns = sql`r.conv_id AS conv, r.user_id AS user, r.inviter_id AS inviter, r.handler_id AS handler,
  r.state, r.text, r.requested_at AS "requestedAt", r.handled_at AS "handledAt"`;

export const joinRequests = (db: Db) => ({
  async of(conv: ConvId, users: readonly UserId[]): Promise<Map<UserId, JoinRequest>> {
    const found = await rows<JoinRequest>(
      db,
      sql`/* joinRequests.of */
        SELECT ${joinRequestColumns}, true AS shown FROM join_requests r
         WHERE r.conv_id = ${conv}::uuid AND r.user_id = ANY (${[...users]}::text[])`,
    );
    return new Map(found.map((request) => [request.user, request]));
  },

  async pending(conv: ConvId): Promise<JoinRequest[]> {
    return rows<JoinRequest>(
      db,
      sql`/* joinRequests.pending */
        SELECT ${joinRequestColumns}, true AS shown FROM join_requests r
         WHERE r.conv_id = ${conv}::uuid AND r.state = 'PENDING' ORDER BY r.user_id`,
    );
  },

  /** What this viewer is shown there as one who leads, not as applicant or inviter. */
  async shownAsLeader(conv: ConvId, viewer: UserId): Promise<{ readonly user: UserId }[]> {
    return rows<{ user: UserId }>(
      db,
      sql`/* joinRequests.shownAsLeader */
        SELECT v.user_id AS user FROM join_request_views v
          JOIN join_requests r ON r.conv_id = v.conv_id AND r.user_id = v.user_id
         WHERE v.viewer_id = ${viewer} AND v.conv_id = ${conv}::uuid AND v.shown
           AND r.user_id <> ${viewer} AND r.inviter_id IS DISTINCT FROM ${viewer}`,
    );
  },

  async open(conv: ConvId, user: UserId, inviter: UserId | null, text: string | null): Promise<void> {
    await rows(
      db,
      sql`/* joinRequests.open */
        INSERT INTO join_requests (conv_id, user_id, inviter_id, state, text)
        VALUES (${conv}::uuid, ${user}, ${inviter}::text, 'PENDING', ${text}::text)
        ON CONFLICT (conv_id, user_id) DO UPDATE SET inviter_id = excluded.inviter_id, state = 'PENDING', text = excluded.text,
           requested_at = excluded.requested_at, handled_at = NULL, handler_id = NULL`,
    );
  },

  async close(conv: ConvId, user: UserId, state: RequestState, handler: UserId | null): Promise<void> {
    await rows(
      db,
      sql`/* joinRequests.close */
        UPDATE join_requests SET state = ${state}::request_state, handled_at = clock_timestamp(), handler_id = ${handler}::text
         WHERE conv_id = ${conv}::uuid AND user_id = ${user}`,
    );
  },

  /** These viewers are shown this request as it is now, or are no longer. They are locked. */
  async show(conv: ConvId, user: UserId, viewers: readonly UserId[], shown = true): Promise<Drawn> {
    const found = await rows<{ viewer: UserId; change: number }>(
      db,
      sql`/* joinRequests.show */
        WITH u AS (UPDATE users SET change_no = change_no + 1 WHERE id = ANY (${[...viewers]}::text[]) RETURNING id, change_no)
        INSERT INTO join_request_views AS v (viewer_id, conv_id, user_id, shown, change_no)
        SELECT u.id, ${conv}::uuid, ${user}, ${shown}, u.change_no FROM u
        ON CONFLICT (viewer_id, conv_id, user_id) DO UPDATE SET shown = excluded.shown, change_no = excluded.change_no
        RETURNING v.viewer_id AS viewer, v.change_no AS change`,
    );
    return new Map(found.map(({ viewer, change }) => [viewer, change]));
  },

  /** As this viewer is shown them: `shown` false to whom they are withdrawn. In the order asked. */
  async seen(
    keys: readonly { readonly viewer: UserId; readonly conv: ConvId; readonly user: UserId }[],
  ): Promise<(JoinRequest | null)[]> {
    return rowsInOrder<JoinRequest>(
      db,
      keys,
      sql`/* joinRequests.seen */
        SELECT k.ord, ${joinRequestColumns}, v.shown
          FROM unnest(${keys.map((k) => k.viewer)}::text[], ${keys.map((k) => k.conv)}::uuid[], ${keys.map((k) => k.user)}::text[])
               WITH ORDINALITY AS k(viewer, c, u, ord)
          JOIN join_request_views v ON v.viewer_id = k.viewer AND v.conv_id = k.c AND v.user_id = k.u
          JOIN join_requests r ON r.conv_id = v.conv_id AND r.user_id = v.user_id`,
    );
  },

  /** One page of those that a viewer is shown, by (conversation, applicant); asks for one more than `first`. */
  async page(
    viewer: UserId,
    query: {
      readonly conv: ConvId | null;
      readonly state: RequestState | null;
      readonly after: { readonly conv: ConvId; readonly user: UserId } | null;
      readonly first: number;
    },
  ): Promise<JoinRequest[]> {
    const { conv, state, after, first } = query;
    return rows<JoinRequest>(
      db,
      sql`/* joinRequests.page */
        SELECT ${joinRequestColumns}, v.shown FROM join_request_views v
          JOIN join_requests r ON r.conv_id = v.conv_id AND r.user_id = v.user_id
         WHERE v.viewer_id = ${viewer} AND v.shown ${conv === null ? none : sql`AND v.conv_id = ${conv}::uuid`}
               ${state === null ? none : sql`AND r.state = ${state}::request_state`}
               ${after === null ? none : sql`AND (v.conv_id, v.user_id) > (${after.conv}::uuid, ${after.user})`}
         ORDER BY v.conv_id, v.user_id LIMIT ${first + 1}::int`,
    );
  },
});
