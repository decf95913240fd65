// send, markRead and ack a second: through the store as the domain calls it, its SQL function alone by plain pg, and the
// simplest statement that stores the same: no client ids, no membership, no epoch, no head checked, no unread answered.
import type { Pool } from 'pg';
import type { ConvId, DeviceViewer, UserId, DeviceId } from '../src/model.js';
import { createStore, type Store } from '../src/store/store.js';
import { convId, loadLogs, memberOf, type LogSizes } from './logs.js';
import { alternate, Findings, mediansOf, rateOf, type Bench } from './measure.js';

const lanes = 8;
/** operations of one turn */
const maxPairs = 2_000;
type Operation = (pair: Pair, n: number) => Promise<unknown>;

/** A member of a conversation; each round takes each pair once, so that every markRead and ack moves. */
interface Pair {
  readonly conv: ConvId;
  readonly viewer: DeviceViewer;
  readonly head: number;
}

export const writes: Bench = async ({ convs, messages, members, rounds, fsync }, server) => {
  await using postgres = await server.database('writes', lanes);
  const { pool, url } = postgres;
  const sizes = { convs, messages, members, users: Math.max(members, 5 * convs) };
  await loadLogs(pool, sizes);
  await pool.query(plainTables);
  await pool.query('VACUUM ANALYZE');
  await using store = createStore({ url, poolMax: lanes });
  const found = new Findings();
  const measure = async (what: string, contenders: Readonly<Record<string, Operation>>, reset?: string) => {
    const pairs = await pairsOf(pool, sizes);
    const turn = (operation: Operation) => async () => {
      if (reset !== undefined) await pool.query(reset);
      await pool.query('VACUUM members, device_cursors, plain.reads, plain.cursors, users, conversations');
      return rateOf({ lanes, count: pairs.length }, (n) => operation(pairs[n] ?? nobody(), n));
    };
    const turns = Object.fromEntries(Object.entries(contenders).map(([name, run]) => [name, turn(run)]));
    const unit = `ops/s, fsync ${fsync ? 'on' : 'off'}`;
    found.compare(what, mediansOf(await alternate(rounds, turns)), unit);
  };
  await measure('send', sends(store, pool));
  await measure(
    'markRead',
    reads(store, pool),
    'UPDATE members SET read_seq = 0, read_no = 0; UPDATE plain.reads SET read_seq = 0',
  );
  await measure(
    'ack',
    acks(store, pool),
    'UPDATE device_cursors SET delivered_seq = 0; UPDATE plain.cursors SET delivered_seq = 0',
  );
  return found;
};

const nobody = (): never => {
  throw new Error('no such pair');
};

/** Members of conversations, ordered so that neighbours in time share neither a conversation nor a user. */
async function pairsOf(pool: Pool, sizes: LogSizes): Promise<Pair[]> {
  const { rows } = await pool.query<{ id: string; head: string }>('SELECT id, head FROM conversations');
  const heads = new Map(rows.map(({ id, head }) => [id, Number(head)]));
  // place 0 is ana in each of them: her row of users would be what the lanes wait for
  const length = Math.min(maxPairs, sizes.convs * (sizes.members - 1));
  return Array.from({ length }, (_, i): Pair => {
    const conv = convId(i % sizes.convs) as ConvId;
    const user = memberOf(sizes, i % sizes.convs, 1 + Math.floor(i / sizes.convs));
    const viewer = { kind: 'device', user: user as UserId, device: user as DeviceId, installEpoch: 0 } as const;
    return { conv, viewer, head: heads.get(conv) ?? 0 };
  });
}

const plainTables = `
  CREATE SCHEMA plain;
  CREATE TABLE plain.conversations WITH (fillfactor = 70) AS SELECT id, head FROM conversations;
  ALTER TABLE plain.conversations ADD PRIMARY KEY (id);
  CREATE TABLE plain.events AS SELECT conv_id, seq, sender_id, at, content FROM events ORDER BY seq, conv_id;
  ALTER TABLE plain.events ADD PRIMARY KEY (conv_id, seq);
  CREATE TABLE plain.reads WITH (fillfactor = 70) AS SELECT user_id, conv_id, 0::bigint AS read_seq FROM members;
  ALTER TABLE plain.reads ADD PRIMARY KEY (user_id, conv_id);
  INSERT INTO device_cursors (device_id, conv_id, install_epoch, delivered_seq) SELECT user_id, conv_id, 0, 0 FROM members;
  CREATE TABLE plain.cursors WITH (fillfactor = 70) AS SELECT device_id, conv_id, delivered_seq FROM device_cursors;
  ALTER TABLE plain.cursors ADD PRIMARY KEY (device_id, conv_id)`;

const content = { text: 'x'.repeat(80) };
const fingerprint = new Uint8Array(32);
let sent = 0;
const newClientId = () => `bench-${String(++sent)}`;

function requireOk({ status, moved = true }: { readonly status: string; readonly moved?: boolean }): void {
  if (status !== 'ok' || !moved) throw new Error(`nothing was written: ${status}`);
}

async function callFunction(pool: Pool, name: string, text: string, values: unknown[]): Promise<void> {
  const { rows } = await pool.query<{ status: string; moved?: boolean }>({ name, text, values });
  requireOk(rows[0] ?? { status: 'no row' });
}

function sends(store: Store, pool: Pool): Record<string, Operation> {
  const more = {
    contentType: 'TEXT',
    counts: true,
    content,
    fingerprint,
    quote: null,
    mentions: [],
    markReadUpTo: null,
    contactsOnly: false,
  };
  return {
    store: async ({ viewer, conv }) =>
      requireOk(await store.transaction((tx) => tx.messages.send(viewer, { conv, clientId: newClientId(), ...more }))),
    function: ({ viewer, conv }) =>
      callFunction(
        pool,
        'send',
        `SELECT * FROM send_event($1, $2, $3, 0, 'DEVICE', $4, 'TEXT', true, $5, $6, NULL, '{}', NULL, false)`,
        [conv, viewer.user, viewer.device, newClientId(), content, fingerprint],
      ),
    simplest: ({ viewer, conv }) =>
      pool.query({
        name: 'plain send',
        text: `WITH c AS (UPDATE plain.conversations SET head = head + 1 WHERE id = $1 RETURNING head)
               INSERT INTO plain.events (conv_id, seq, sender_id, at, content) SELECT $1, head, $2, now(), $3 FROM c RETURNING seq`,
        values: [conv, viewer.user, content],
      }),
  };
}

function reads(store: Store, pool: Pool): Record<string, Operation> {
  return {
    store: async ({ viewer, conv, head }) =>
      requireOk(await store.transaction((tx) => tx.readState.advance(viewer, conv, head))),
    function: ({ viewer, conv, head }) =>
      callFunction(pool, 'read', 'SELECT * FROM mark_read($1, $2, 0, $3, $4)', [
        viewer.user,
        viewer.device,
        conv,
        head,
      ]),
    simplest: ({ viewer, conv, head }) =>
      pool.query({
        name: 'plain read',
        text: `INSERT INTO plain.reads AS r VALUES ($1, $2, $3) ON CONFLICT (user_id, conv_id)
               DO UPDATE SET read_seq = greatest(r.read_seq, excluded.read_seq) RETURNING read_seq`,
        values: [viewer.user, conv, head],
      }),
  };
}

function acks(store: Store, pool: Pool): Record<string, Operation> {
  return {
    store: async ({ viewer, conv, head }) => requireOk(await store.delivery.ack(viewer, conv, head)),
    simplest: ({ viewer, conv, head }) =>
      pool.query({
        name: 'plain ack',
        text: `INSERT INTO plain.cursors AS d VALUES ($1, $2, $3) ON CONFLICT (device_id, conv_id)
               DO UPDATE SET delivered_seq = greatest(d.delivered_seq, excluded.delivered_seq) RETURNING delivered_seq`,
        values: [viewer.device, conv, head],
      }),
  };
}
