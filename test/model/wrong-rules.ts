// Wrong rules, put into the log core one at a time: the random histories must notice every one. Each is a replacement in the
// newest text of the views and functions that the migrations define.
import { readdir, readFile } from 'node:fs/promises';
import type { Pool } from 'pg';

type Change = readonly [from: string, to: string];

export const wrongRules: Readonly<Record<string, readonly Change[]>> = {
  'read ordinal used although the floor is above read': [
    ['WHEN greatest(m.read_seq, m.first_seq - 1) >= c.min_seq - 1 THEN m.read_no', 'WHEN true THEN m.read_no'],
  ],
  'floor: own messages below it forgotten': [
    ['CASE WHEN m.last_own_seq < c.min_seq THEN m.own_no', 'CASE WHEN true THEN m.own_no'],
  ],
  'floor: past period ignored': [['AND p.from_seq <= c.min_seq - 1', 'AND false']],
  'floor: end of the past period ignored': [
    ['(SELECT least(c.min_msg_no, p.to_msg_no) - p.hidden_no', '(SELECT c.min_msg_no - p.hidden_no'],
  ],
  'recalled: own ones subtracted too': [
    ['AND e.sender_id IS DISTINCT FROM m.user_id\n                       AND (e.seq', 'AND (e.seq'],
  ],
  'recalled: those between periods subtracted': [['AND (e.seq >= m.from_seq OR EXISTS (', 'AND (true OR EXISTS (']],
  'recalled: those after the end subtracted': [
    ['AND e.seq <= coalesce(m.to_seq, c.head)\n                       AND e.sender', 'AND e.sender'],
  ],
  'recalled: those below the floor subtracted': [
    [
      'AND e.seq > greatest(m.read_seq, m.first_seq - 1, c.min_seq - 1)',
      'AND e.seq > greatest(m.read_seq, m.first_seq - 1)',
    ],
  ],
  'recalled: the newest recall compared, not the largest target': [
    ['last_recalled_seq = greatest(x.last_recalled_seq, p_seq)', 'last_recalled_seq = p_seq'],
  ],
  'recall marks without raising last_recalled_seq': [['IF e.counts THEN', 'IF false THEN']],
  'recall keeps the body': [
    [
      "UPDATE events x SET recalled_by = recall_event.seq, content = NULL, quote_seq = NULL, mentions = '{}'",
      'UPDATE events x SET recalled_by = NULL',
    ],
  ],
  'rejoin forgets what was hidden': [
    ['hidden_no = m.hidden_no + c.head_msg_no - m.to_msg_no', 'hidden_no = m.hidden_no'],
  ],
  'rejoin with visible history keeps the old read ordinal': [
    ['read_no = excluded.read_no - m.own_no,', 'read_no = excluded.read_no,'],
  ],
  'rejoin with visible history leaves the old periods standing': [['SET superseded = true', 'SET superseded = false']],
  'markRead: own messages above read forgotten': [
    ['IF f.last_own_seq <= x THEN own := f.own_no;', 'IF true THEN own := f.own_no;'],
  ],
  'markRead: position between periods': [
    [
      'ELSE (SELECT least(cx, p.to_msg_no) - p.hidden_no FROM past_periods p',
      'ELSE (SELECT cx - p.hidden_no FROM past_periods p',
    ],
  ],
  'markRead: latest period only': [
    ['ELSIF x < f.from_seq THEN no := mine_no(p_user, p_conv, x);', 'ELSIF false THEN no := 0;'],
  ],
  'markRead: floor event gone': [['ELSIF x < f.min_seq THEN cx := f.min_msg_no;', '']],
  'markRead: no cap for former members': [['x := least(p_seq, f.to_seq);', 'x := p_seq;']],
  'markRead: last write wins': [
    ['rises := NOT ahead AND x > f.read_seq;', 'rises := NOT ahead;'],
    ['AND (m.read_seq < t.x OR m.marked_unread AND m.read_seq = t.y)', ''],
  ],
  'markRead: above head taken': [['ahead := x > head;', 'ahead := false;']],
  'leave: the closing event is not seen': [['SET to_seq = p_seq, to_msg_no', 'SET to_seq = p_seq - 1, to_msg_no']],
  'send: own ordinal not kept': [['SET own_no = x.own_no + n, last_own_seq', 'SET own_no = x.own_no, last_own_seq']],
  'send: a former member may send': [
    [
      'SELECT * INTO m FROM members x WHERE x.user_id = p_user AND x.conv_id = p_conv AND x.to_seq IS NULL;\n  IF NOT FOUND OR c.dissolved_seq',
      'SELECT * INTO m FROM members x WHERE x.user_id = p_user AND x.conv_id = p_conv;\n  IF NOT FOUND OR c.dissolved_seq',
    ],
  ],
  'send: a known client id is not looked up': [['AND e.client_id = p_client', 'AND e.client_id = p_client AND false']],
  'raise_floor: ordinal at min instead of min - 1': [['AND e.seq = p_min - 1)', 'AND e.seq = p_min)']],
  'changes: a read keeps the number of the change before': [
    ['marked_unread = false, change_no = n\n', 'marked_unread = false\n'],
  ],
  'changes: leaving keeps the number of the change before': [
    ['to_at = c.head_at, change_no = u.change_no', 'to_at = c.head_at'],
  ],
  'unread: read derived from delivery': [
    [
      'coalesce(m.to_at, c.head_at) AS active_at, m.read_seq,',
      `coalesce(m.to_at, c.head_at) AS active_at, greatest(m.read_seq, (SELECT max(d.delivered_seq) FROM device_cursors d
         JOIN devices x ON x.id = d.device_id WHERE x.user_id = m.user_id AND d.conv_id = m.conv_id)) AS read_seq,`,
    ],
  ],
};

const migrations = new URL('../../prisma/migrations/', import.meta.url);
const definition =
  /CREATE (?:OR REPLACE )?(?:(VIEW) (\w+) AS[\s\S]*?;\n|(FUNCTION) (\w+)\([\s\S]*?\$\$[\s\S]*?\$\$;\n)/gu;

/** Every view and function as the last migration that speaks of it has it, in the order of their first definitions. */
async function logCore(): Promise<Map<string, string>> {
  const core = new Map<string, string>();
  for (const name of (await readdir(migrations)).filter((each) => /^\d/u.test(each)).toSorted()) {
    const text = await readFile(new URL(`${name}/migration.sql`, migrations), 'utf8');
    for (const [whole, view, viewName, , functionName] of text.matchAll(definition)) {
      const key = view === undefined ? `FUNCTION ${functionName ?? ''}` : `VIEW ${viewName ?? ''}`;
      core.set(key, whole.replace('CREATE OR REPLACE', 'CREATE'));
    }
  }
  return core;
}

/** Puts the log core into this database again, with one wrong rule. @throws when the rule's text is no longer there */
export async function putWrongRule(pool: Pool, name: string): Promise<void> {
  const core = await logCore();
  const right = [...core.values()].join('\n');
  let wrong = right;
  for (const [from, to] of wrongRules[name] ?? []) {
    if (!wrong.includes(from)) throw new Error(`the wrong rule "${name}" no longer fits the log core`);
    wrong = wrong.replace(from, to);
  }
  if (wrong === right) throw new Error(`there is no wrong rule "${name}"`);
  const drops = [...core.keys()].toReversed().map((each) => `DROP ${each};`);
  await pool.query(`${drops.join(' ')} ${wrong}`);
}
