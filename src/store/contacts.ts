// Contacts and contact requests. Every write holds the row locks of both users, and draws a change number of its own for each
// user whose row it is (C2).
import type { Contact, ContactRequest, RequestState, UserId } from '../model.js';
import { none, row, rows, rowsInOrder, sql, type Db } from './sql.js';

/** Everything between two users, as the first of them sees it. */
export interface Ties {
  readonly mine: Contact | null;
  readonly theirs: Contact | null;
  readonly sent: ContactRequest | null;
  readonly received: ContactRequest | null;
}

/** Whose row it is and the number of its change. */
export type Drawn = ReadonlyMap<UserId, number>;

export const contactColumns = sql`c.peer_id AS peer, c.active, c.since, c.remark, c.muted, c.pinned, c.blocked`;
export const requestColumns = sql`r.from_id AS "from", r.to_id AS "to", r.state, r.text, r.requested_at AS "requestedAt",
  r.handled_at AS "handledAt"`;

const friends = (user: UserId) => sql`
  SELECT c.user_id FROM contacts mine JOIN contacts c ON c.user_id = mine.peer_id AND c.peer_id = mine.user_id AND c.active
   WHERE mine.user_id = ${user} AND mine.active`;

export const contacts = (db: Db) => ({
  async ties(me: UserId, peer: UserId): Promise<Ties> {
    const found = await rows<Contact & { user: UserId }>(
      db,
      sql`/* contacts.ties */
        SELECT c.user_id AS user, ${contactColumns} FROM contacts c
         WHERE (c.user_id, c.peer_id) IN ((${me}, ${peer}), (${peer}, ${me}))`,
    );
    const requests = await rows<ContactRequest>(
      db,
      sql`/* contacts.tiesRequests */
        SELECT ${requestColumns} FROM contact_requests r
         WHERE (r.from_id, r.to_id) IN ((${me}, ${peer}), (${peer}, ${me}))`,
    );
    const heldBy = (user: UserId) => found.find((contact) => contact.user === user) ?? null;
    const askedBy = (user: UserId) => requests.find(({ from }) => from === user) ?? null;
    return { mine: heldBy(me), theirs: heldBy(peer), sent: askedBy(me), received: askedBy(peer) };
  },

  /** Writes one direction. */
  async put(user: UserId, { peer, active, since, remark, muted, pinned, blocked }: Contact): Promise<Drawn> {
    const { change } = await row<{ change: number }>(
      db,
      sql`/* contacts.put */
        WITH u AS (UPDATE users SET change_no = change_no + 1 WHERE id = ${user} RETURNING id, change_no)
        INSERT INTO contacts AS c (user_id, peer_id, active, since, remark, muted, pinned, blocked, change_no)
        SELECT u.id, ${peer}, ${active}, ${since}::timestamptz, ${remark}::text, ${muted}, ${pinned}, ${blocked}, u.change_no FROM u
        ON CONFLICT (user_id, peer_id) DO UPDATE SET active = excluded.active, since = excluded.since, remark = excluded.remark,
           muted = excluded.muted, pinned = excluded.pinned, blocked = excluded.blocked, change_no = excluded.change_no
        RETURNING c.change_no AS change`,
    );
    return new Map([[user, change]]);
  },

  /** Writes the one request of this ordered pair. Asking again begins it anew. */
  async putRequest(from: UserId, to: UserId, state: RequestState, text: string | null): Promise<Drawn> {
    const handledAt = state === 'PENDING' ? sql`NULL` : sql`clock_timestamp()`;
    const { fromChange, toChange } = await row<{ fromChange: number; toChange: number }>(
      db,
      sql`/* contacts.putRequest */
        WITH u AS (UPDATE users SET change_no = change_no + 1 WHERE id IN (${from}, ${to}) RETURNING id, change_no)
        INSERT INTO contact_requests AS r (from_id, to_id, state, text, handled_at, from_change_no, to_change_no)
        SELECT f.id, t.id, ${state}::request_state, ${text}::text, ${handledAt}, f.change_no, t.change_no
          FROM u f JOIN u t ON f.id = ${from} AND t.id = ${to}
        ON CONFLICT (from_id, to_id) DO UPDATE SET state = excluded.state, text = excluded.text, handled_at = excluded.handled_at,
           requested_at = CASE excluded.state WHEN 'PENDING' THEN excluded.requested_at ELSE r.requested_at END,
           from_change_no = excluded.from_change_no, to_change_no = excluded.to_change_no
        RETURNING r.from_change_no AS "fromChange", r.to_change_no AS "toChange"`,
    );
    return new Map([
      [from, fromChange],
      [to, toChange],
    ]);
  },

  /** Who has this user for a contact, and is one of theirs. */
  async friendsOf(user: UserId): Promise<UserId[]> {
    const found = await rows<{ user: UserId }>(
      db,
      sql`/* contacts.friendsOf */ SELECT f.user_id AS user FROM (${friends(user)}) f`,
    );
    return found.map(({ user: friend }) => friend);
  },

  /** The rows of these friends change with the user. They are locked. */
  async touchFriendsOf(user: UserId): Promise<Drawn> {
    const found = await rows<{ user: UserId; change: number }>(
      db,
      sql`/* contacts.touchFriendsOf */
        WITH u AS (UPDATE users u SET change_no = u.change_no + 1 FROM (${friends(user)}) f WHERE u.id = f.user_id
                   RETURNING u.id, u.change_no)
        UPDATE contacts c SET change_no = u.change_no FROM u WHERE c.user_id = u.id AND c.peer_id = ${user}
        RETURNING c.user_id AS user, c.change_no AS change`,
    );
    return new Map(found.map(({ user: friend, change }) => [friend, change]));
  },

  /** Single rows, in the order asked. */
  async of(keys: readonly { readonly user: UserId; readonly peer: UserId }[]): Promise<(Contact | null)[]> {
    return rowsInOrder<Contact>(
      db,
      keys,
      sql`/* contacts.of */
        SELECT k.ord, ${contactColumns}
          FROM unnest(${keys.map((k) => k.user)}::text[], ${keys.map((k) => k.peer)}::text[]) WITH ORDINALITY AS k(u, p, ord)
          JOIN contacts c ON c.user_id = k.u AND c.peer_id = k.p`,
    );
  },

  async requestsOf(
    keys: readonly { readonly from: UserId; readonly to: UserId }[],
  ): Promise<(ContactRequest | null)[]> {
    return rowsInOrder<ContactRequest>(
      db,
      keys,
      sql`/* contacts.requestsOf */
        SELECT k.ord, ${requestColumns}
          FROM unnest(${keys.map((k) => k.from)}::text[], ${keys.map((k) => k.to)}::text[]) WITH ORDINALITY AS k(f, t, ord)
          JOIN contact_requests r ON r.from_id = k.f AND r.to_id = k.t`,
    );
  },

  /** One page by the other user's id; asks for one more than `first`. */
  async page(user: UserId, which: 'ACTIVE' | 'BLOCKED', after: UserId | null, first: number): Promise<Contact[]> {
    return rows<Contact>(
      db,
      sql`/* contacts.page */
        SELECT ${contactColumns} FROM contacts c
         WHERE c.user_id = ${user} AND ${which === 'ACTIVE' ? sql`c.active` : sql`c.blocked`} AND c.peer_id > ${after ?? ''}
         ORDER BY c.peer_id LIMIT ${first + 1}::int`,
    );
  },

  /** One page by the other user's id; asks for one more than `first`. */
  async requestPage(
    user: UserId,
    query: {
      readonly sent: boolean;
      readonly state: RequestState | null;
      readonly after: UserId | null;
      readonly first: number;
    },
  ): Promise<ContactRequest[]> {
    const [mine, other] = query.sent ? [sql`r.from_id`, sql`r.to_id`] : [sql`r.to_id`, sql`r.from_id`];
    return rows<ContactRequest>(
      db,
      sql`/* contacts.requestPage */
        SELECT ${requestColumns} FROM contact_requests r
         WHERE ${mine} = ${user} AND ${other} > ${query.after ?? ''}
               ${query.state === null ? none : sql`AND r.state = ${query.state}::request_state`}
         ORDER BY ${other} LIMIT ${query.first + 1}::int`,
    );
  },
});
