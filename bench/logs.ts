// Conversations with long logs, loaded by a few statements that keep the ordinals right, and compared with a plain count.
// Every user has one device, of the same id; all devices have one secret, made anew each time.
// A conversation: GROUP_CREATE by ana, MEMBER_INVITE of all others, the messages, and 0.5 % of the messages recalled.
import { createHash, randomBytes } from 'node:crypto';
import type { Pool } from 'pg';

export interface LogSizes {
  readonly convs: number;
  readonly messages: number;
  readonly members: number;
  /** at least `members`; ana, the first of them, is in every conversation */
  readonly users: number;
}

/** The nth conversation, from 0. */
export const convId = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
/** The user in this place of the nth conversation; place 0 is ana. */
export const memberOf = ({ members, users }: LogSizes, conv: number, place: number): string =>
  place === 0 ? 'ana' : `member-${String((conv * (members - 1) + place - 1) % (users - 1))}`;

const secret = randomBytes(32).toString('base64url');
export const credentialOf = (user: string): string => `tm_${user}.${secret}.0`;

/** Of the first message: the two system events come before it. */
export const firstMessageSeq = 3;

const places = `
  CREATE UNLOGGED TABLE places AS
  SELECT c AS n, ('00000000-0000-4000-8000-' || lpad(to_hex(c), 12, '0'))::uuid AS conv_id, p AS place,
         CASE p WHEN 0 THEN 'ana' ELSE 'member-' || (c::bigint * ($2::int - 1) + p - 1) % ($3::int - 1) END AS user_id
    FROM generate_series(0, $1::int - 1) c, generate_series(0, $2::int - 1) p`;

const logs = [
  `INSERT INTO users (id) SELECT 'ana' UNION ALL SELECT 'member-' || i FROM generate_series(0, $3::int - 2) i`,
  `INSERT INTO conversations (id, type, title, head, head_msg_no, member_count)
   SELECT DISTINCT conv_id, 'GROUP'::conv_type, 'Group ' || n, $1::int + 2, $1::int, $2::int FROM places`,
  `INSERT INTO events (conv_id, seq, msg_no, sender_id, at, kind, content_type, counts, via, content)
   SELECT conv_id, place + 1, 0, 'ana', clock_timestamp(), 'MEMBERSHIP', CASE place WHEN 0 THEN 'GROUP_CREATE' ELSE 'MEMBER_INVITE' END,
          false, 'SERVICE', '{"users": []}' FROM places WHERE place < 2`,
  // row by row through all conversations, as they come in a live table
  `INSERT INTO events (conv_id, seq, msg_no, own_no, sender_id, at, kind, content_type, counts, via, client_id, content, fingerprint)
   SELECT conv_id, i + 2, i, row_number() OVER (PARTITION BY conv_id, user_id ORDER BY i), user_id, clock_timestamp(), 'MESSAGE', 'TEXT',
          true, 'DEVICE', 'load-' || n || '-' || i, jsonb_build_object('text', repeat('x', 80)), '\\x00'
     FROM generate_series(1, $1::int) i
     JOIN places p ON place = (hashint8(n * 7919::bigint + i) & 2147483647) % $2::int
    ORDER BY i, n`,
  `INSERT INTO members (user_id, conv_id, role, joined_seq, first_seq, from_seq, hidden_no, own_no, last_own_seq)
   SELECT p.user_id, p.conv_id, CASE place WHEN 0 THEN 'OWNER' ELSE 'MEMBER' END::role, j, j, j, 0, coalesce(o.n, 0), coalesce(o.last, 0)
     FROM places p CROSS JOIN LATERAL (SELECT least(place, 1) + 1 AS j)
     LEFT JOIN (SELECT conv_id, sender_id, count(*) AS n, max(seq) AS last FROM events WHERE counts GROUP BY 1, 2) o
       ON o.conv_id = p.conv_id AND o.sender_id = p.user_id
    ORDER BY place, p.n`,
] as const;

const recallSome = `
  SELECT count(*) FILTER (WHERE r.status = 'ok') = count(*) AS fine
    FROM (SELECT conv_id, seq FROM events WHERE counts AND (hashint8(hashtext(conv_id::text) + seq) & 2147483647) % 200 = 0
           ORDER BY conv_id, seq) e
   CROSS JOIN LATERAL recall_event(e.conv_id, 'ana', NULL, 0, 'SERVICE', e.seq, 0) r`;

/** What the client is told of each conversation; `unread` says how. */
export const convsSql = (unread: string) => `
  SELECT m.conv_id, c.epoch, coalesce(m.to_seq, c.head) AS head, c.min_seq, m.read_seq, m.muted, ${unread} AS unread
    FROM members m JOIN conversations c ON c.id = m.conv_id WHERE m.user_id = $1`;
/** U1 to the letter. */
export const countedSql = convsSql(`(
  SELECT count(*) FROM periods p JOIN events e ON e.conv_id = m.conv_id AND e.seq > m.read_seq
     AND e.seq >= greatest(p.from_seq, c.min_seq) AND e.seq <= coalesce(p.to_seq, c.head)
   WHERE p.user_id = m.user_id AND p.conv_id = m.conv_id AND e.counts AND e.recalled_by IS NULL
     AND e.sender_id IS DISTINCT FROM m.user_id)`);
export const stateSql = `
  SELECT s.conv_id, s.epoch, s.head, s.min_seq, s.read_seq, s.muted, s.unread FROM conv_state s WHERE s.user_id = $1`;

export async function loadLogs(pool: Pool, sizes: LogSizes): Promise<void> {
  const { convs, messages, members, users } = sizes;
  if (users < members || members < 2) throw new Error('there are at least 2 members, and as many users as members');
  await pool.query(inlined(places, [convs, members, users]));
  await pool.query('CREATE UNIQUE INDEX ON places (n, place); ANALYZE places');
  for (const statement of logs) await pool.query(inlined(statement, [messages, members, users]));
  await pool.query('DROP TABLE places');
  const hash = createHash('sha256').update(secret).digest();
  await pool.query('INSERT INTO devices (id, user_id, secret_hash) SELECT id, id, $1 FROM users', [hash]);
  const { rows } = await pool.query<{ fine: boolean }>(recallSome);
  if (rows[0]?.fine !== true) throw new Error('a recall was refused');
  await pool.query('VACUUM (FREEZE, ANALYZE)');
  for (const user of ['ana', memberOf(sizes, 0, 1), memberOf(sizes, convs - 1, members - 1)]) {
    await requireSameUnread(pool, user);
  }
}

/** DDL takes no parameters, and not every statement uses all of them: whole numbers are written in. */
const inlined = (sql: string, values: readonly number[]) =>
  sql.replace(/\$(\d)/g, (_, n: string) => String(Math.trunc(values[Number(n) - 1] ?? Number.NaN)));

/** The view and the plain count, conversation by conversation; answers the sum. */
export async function requireSameUnread(pool: Pool, user: string): Promise<number> {
  const { rows } = await pool.query<{ different: number; unread: number }>(
    `SELECT count(*) FILTER (WHERE a.unread IS DISTINCT FROM b.unread)::int AS different, sum(a.unread)::int AS unread
       FROM (${stateSql}) a FULL JOIN (${countedSql}) b USING (conv_id)`,
    [user],
  );
  const [found] = rows;
  if (!found || found.different > 0) throw new Error(`unread of ${user} differs from the count`);
  return found.unread;
}
