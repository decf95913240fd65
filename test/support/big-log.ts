// Logs and rooms too large to be made one request at a time, written as send_event and open_periods would write them.
import type { Pool } from 'pg';

const messages = `
  WITH held AS (SELECT id, head, head_msg_no FROM conversations WHERE id = $1 FOR NO KEY UPDATE),
  mine AS (UPDATE members m SET own_no = m.own_no + $3, last_own_seq = held.head + $3 FROM held
            WHERE m.conv_id = held.id AND m.user_id = $2 RETURNING m.own_no - $3 AS own_no),
  rise AS (UPDATE conversations c SET head = c.head + $3, head_msg_no = c.head_msg_no + $3, head_at = clock_timestamp()
             FROM held WHERE c.id = held.id)
  INSERT INTO events (conv_id, seq, msg_no, own_no, sender_id, at, kind, content_type, counts, via, content)
  SELECT held.id, held.head + i, held.head_msg_no + i, mine.own_no + i, $2, clock_timestamp(), 'MESSAGE', 'TEXT', true, 'DEVICE',
         jsonb_build_object('text', i::text)
    FROM held, mine, generate_series(1, $3::bigint) i`;

/** `count` messages of a member. */
export async function sendMany(pool: Pool, conv: string, sender: string, count: number): Promise<void> {
  const { rowCount } = await pool.query(messages, [conv, sender, count]);
  if (rowCount !== count) throw new Error(`${sender} is no member of ${conv}`);
}

/** `count` users more, who all are members from here on, without an event. */
export async function joinMany(pool: Pool, conv: string, count: number): Promise<void> {
  await pool.query(`INSERT INTO users (id) SELECT $1 || i FROM generate_series(1, $2::int) i`, [`${conv}-`, count]);
  await pool.query(
    `WITH c AS (UPDATE conversations SET member_count = member_count + $2 WHERE id = $1 RETURNING *)
     INSERT INTO members (user_id, conv_id, joined_seq, first_seq, from_seq, hidden_no)
     SELECT c.id || '-' || i, c.id, c.head + 1, c.head + 1, c.head + 1, c.head_msg_no FROM c, generate_series(1, $2::int) i`,
    [conv, count],
  );
}

/** Groups of these two, both from 1 on, with `head` messages of the first; answers their ids in their order. */
export async function groupsOf(
  pool: Pool,
  [sender, reader]: [string, string],
  count: number,
  head: number,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `WITH c AS (INSERT INTO conversations (id, type, head, head_msg_no, member_count)
                SELECT gen_random_uuid(), 'GROUP', $4::bigint, $4::bigint, 2 FROM generate_series(1, $3::int) RETURNING id),
     m AS (INSERT INTO members (user_id, conv_id, joined_seq, first_seq, from_seq, hidden_no, own_no, last_own_seq)
           SELECT u.id, c.id, 1, 1, 1, 0, u.own, u.own FROM c, (VALUES ($1, $4::bigint), ($2, 0)) u(id, own)),
     e AS (INSERT INTO events (conv_id, seq, msg_no, own_no, sender_id, at, kind, content_type, counts, via, content)
           SELECT c.id, i, i, i, $1, clock_timestamp(), 'MESSAGE', 'TEXT', true, 'DEVICE', '{"text": "hi"}'
             FROM c, generate_series(1, $4::bigint) i)
     SELECT id FROM c ORDER BY id`,
    [sender, reader, count, head],
  );
  return rows.map(({ id }) => id);
}
