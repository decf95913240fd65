// A group of 10,000 (H7): what a message costs does not grow with the members, and each of them hears of it.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defaultLimits } from '../../src/config.js';
import { joinMany } from '../support/big-log.js';
import { listenToMessages } from '../support/live-hints.js';
import { recordingBus } from '../support/recording-bus.js';
import { startWorld, type Actor, type World } from '../support/world.js';

const size = 10_000;
const bus = recordingBus();
let world: World;
let ana: Actor;
let large: string;
let small: string;

beforeAll(async () => {
  world = await startWorld({ config: { limits: { ...defaultLimits, maxGroupMembers: size } }, overrides: { bus } });
  await world.users('u1', 'u2', 'u3', 'u4', 'u5', 'u6', 'u7');
  ana = await world.device('ana');
  const made = [ana.createConv({ members: ['ben'] }), ana.createConv({ members: ['ben'] })];
  [large = '', small = ''] = (await Promise.all(made)).map(({ conv }) => conv.id);
  await joinMany(world.app.deps.store.pool, large, size - 3);
}, 60_000);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const endBoth = () => world.app.deps.store.pool.query('UPDATE conversations SET both_until = NULL');

/** Rows that one message writes: what the functions of the store do, in a transaction that is rolled back. */
async function rowsWritten(conv: string): Promise<{ rows: number; named: number }> {
  const client = new pg.Client({ connectionString: world.app.databaseUrl });
  await client.connect();
  try {
    await client.query('BEGIN');
    const { rows: sent } = await client.query<{ status: string; named: number | null }>(
      `SELECT status, cardinality(audience) AS named
         FROM send_event($1, 'ana', NULL, 0, 'SERVICE', 'k', 'TEXT', true, '{"text": "x"}', '\\x00', NULL, '{}', NULL, false)`,
      [conv],
    );
    expect(sent[0]?.status).toBe('ok');
    const { rows } = await client.query<{ rows: number }>(
      'SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::int AS rows FROM pg_stat_xact_user_tables',
    );
    return { rows: rows[0]?.rows ?? 0, named: sent[0]?.named ?? 0 };
  } finally {
    await client.end();
  }
}

test('[H7] one more than the limit is refused, and the limit is what the configuration says', async () => {
  const tooMany = ana.addMembers(large, ['u1', 'u2']);
  await expect(tooMany).rejects.toMatchObject({ code: 'BAD_USER_INPUT', extensions: { limit: size } });
});

test('[H7] in PUSH a message is one publish for each member', async () => {
  const { event } = await ana.send(large, 'to each by name');
  expect(bus.named(large, event.seq)).toHaveLength(size - 1);
  expect(bus.toldConv(large)).toEqual([]);
  expect((await rowsWritten(large)).named).toBe(size - 1);
});

test('[H7] in PULL it is one publish in all and as many rows as in a group of ten, and whoever is here hears of it', async () => {
  await ana.addMembers(large, ['cho']); // the mode is settled with the number of members
  await ana.addMembers(small, ['cho', 'u1', 'u2', 'u3', 'u4', 'u5', 'u6', 'u7']);
  await endBoth();
  const lives = await Promise.all(
    ['ben', 'cho', `${large}-1`, `${large}-5000`].map(async (user) => listenToMessages(await world.device(user))),
  );
  const { event } = await ana.send(large, 'to all at once');
  for (const live of lives) expect((await live.until(({ resync }) => resync === null)).seq).toBe(event.seq);
  expect(bus.named(large, event.seq)).toEqual([]);
  expect(bus.toldConv(large).filter(({ seq }) => seq === event.seq)).toHaveLength(1);
  const [inLarge, inSmall] = [await rowsWritten(large), await rowsWritten(small)];
  expect(inLarge).toEqual({ rows: inSmall.rows, named: 0 });
  expect(inSmall.named).toBe(10);
  expect((await ana.recall(large, event.seq)).target.recalled).toBe(true);
  for (const live of lives) expect((await live.next()).contentType).toBe('RECALL');
  expect(bus.named(large, event.seq + 1)).toEqual([]);
  await Promise.all(lives.map((live) => live.socket.close()));
});

test('[H7] a hundred messages at once are a few publishes, and everyone knows the last', async () => {
  const live = await listenToMessages(await world.device(`${large}-77`));
  const told = bus.toldConv(large).length;
  const startedAt = performance.now();
  const sent = await Promise.all(Array.from({ length: 100 }, (_, n) => ana.send(large, String(n))));
  const last = Math.max(...sent.map(({ event }) => event.seq));
  await live.until(({ seq }) => seq === last);
  const intervals = (performance.now() - startedAt) / 100;
  expect(bus.toldConv(large).length - told).toBeLessThanOrEqual(intervals + 2);
  await live.socket.close();
});
