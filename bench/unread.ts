// One user's list of conversations with its unread numbers, at several backlogs: by ordinals (the view conv_state), by
// counting rows as U1 defines it, and the rows alone without a number, which no way of computing it can beat.
import type { Pool } from 'pg';
import { convsSql, countedSql, firstMessageSeq, loadLogs, requireSameUnread, stateSql } from './logs.js';
import { alternate, Findings, mediansOf, millisecondsOf, type Bench } from './measure.js';

const backlogs = [0, 10, 100, 1_000];

export const unread: Bench = async (options, server) => {
  const { convs, messages, members, rounds } = options;
  await using postgres = await server.database('unread', 1);
  const { pool } = postgres;
  await loadLogs(pool, { convs, messages, members, users: Math.max(members, convs) });
  const found = new Findings();
  const ask = (name: string, text: string) => () => millisecondsOf(() => pool.query({ name, text, values: ['ana'] }));
  for (const behind of backlogs.filter((count) => count <= messages)) {
    await setBehind(pool, messages, behind);
    found.row(`${String(behind)} behind: unread in all`, await requireSameUnread(pool, 'ana'), 'messages');
    const measured = await alternate(rounds * 5, {
      ordinals: ask('ordinals', stateSql),
      counting: ask('counting', countedSql),
      rows: ask('rows', convsSql('m.read_no')),
    });
    found.compare(`${String(behind)} behind`, mediansOf(measured), 'ms');
  }
  return found;
};

/** ana has read all but the last messages of every conversation. */
async function setBehind(pool: Pool, messages: number, behind: number): Promise<void> {
  const seq = behind === 0 ? 'c.head' : String(firstMessageSeq - 1 + messages - behind);
  await pool.query(
    `UPDATE members m SET read_seq = ${seq}, read_no = mine_no(m.user_id, m.conv_id, ${seq})
       FROM conversations c WHERE c.id = m.conv_id AND m.user_id = 'ana'`,
  );
  await pool.query('VACUUM ANALYZE members');
}
