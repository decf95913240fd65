// `tidemark restored` while two nodes run: every client is told, and hints go on, also while one node knows and one does not.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.js';
import { listenToAll, listenToMessages } from '../support/live-hints.js';
import { freshDatabase, type TestDatabase } from '../support/postgres.js';
import { sharedRedisUrl } from '../support/redis.js';
import { Actor, World } from '../support/world.js';

let database: TestDatabase;
let one: World;
let two: TestApp;

beforeAll(async () => {
  database = await freshDatabase();
  const config = { redisUrl: sharedRedisUrl(), redisPrefix: `restored ${randomUUID()}:` };
  // the test says when they look
  const options = { databaseUrl: database.url, config, overrides: { checkEveryMs: 3_600_000 } };
  one = new World(await startApp(options));
  two = await startApp(options);
  await one.users('ana', 'ben');
});
afterAll(async () => {
  await two[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const restored = () => one.app.deps.store.transaction((tx) => tx.generation.begin());
const isRestored = (row: Readonly<Record<string, unknown>>) => row['reason'] === 'RESTORED';

test('[L8] [H3] each node notices by itself, its clients resync and sync tells them what to drop; later hints reach both', async () => {
  const [ana, phone, laptop] = [await one.device('ana'), await one.device('ben'), await one.device('ben')];
  const far = new Actor(two, laptop.credential);
  const conv = (await ana.createConv({ members: ['ben'] })).conv.id;
  const { event } = await ana.send(conv, 'before');
  const held = await phone.conv(conv);
  const lives = [await listenToAll(phone), await listenToAll(far)];
  const messages = await listenToMessages(far);
  const badge = await two.subscribe(laptop.credential, 'subscription { badgeChanged { unread } }');
  expect((await badge.next()).data).toEqual({ badgeChanged: { unread: 1 } });

  await restored();
  await one.app.connections.check();
  await lives[0]?.until(isRestored);
  // the other node has not noticed yet: what it writes is heard here, what is written here it learns by its resync
  const late = await new Actor(two, ana.credential).send(conv, 'from the late node');
  await lives[0]?.until((row) => row['seq'] === late.event.seq);
  await ana.send(conv, 'from the early node');
  await two.connections.check();
  await lives[1]?.until(isRestored);
  await messages.until(({ resync }) => resync === 'RESTORED');
  await badge.until(({ data }) => (data as { badgeChanged: { unread: number } }).badgeChanged.unread === 3);

  const [item] = (await phone.sync([{ conv, after: event.seq, epoch: held.epoch }])).items;
  expect(item?.reset).toEqual({ reason: 'EPOCH', start: 0 });
  const { event: last } = await ana.send(conv, 'after');
  for (const live of lives) await live.until((row) => row['seq'] === last.seq);
  for (const app of [one.app, two]) await app.connections.check();
  for (const live of lives) expect(live.rows.filter(isRestored)).toHaveLength(1);
  for (const { socket } of [...lives, messages, badge]) await socket.close();
});

test('[L8] [H8] after a restore a socket is sent numbers lower than before', async () => {
  const [ana, ben] = [await one.device('ana'), await one.device('ben')];
  const conv = (await ana.createConv({ members: ['ben'] })).conv.id;
  const live = await ben.app.subscribe(ben.credential, 'subscription { message { resync head conv { head } } }');
  await live.next();
  for (let n = 0; n < 3; n++) await ana.send(conv, 'lost later');
  await live.until(({ data }) => (data as { message: { head: number } }).message.head === 5);
  // the backup holds the first two events
  const { pool } = one.app.deps.store;
  await pool.query('DELETE FROM events WHERE conv_id = $1 AND seq > 2', [conv]);
  await pool.query('UPDATE members SET own_no = 0, last_own_seq = 0, read_seq = 2, read_no = 0 WHERE conv_id = $1', [
    conv,
  ]);
  await pool.query('UPDATE conversations SET head = 2, head_msg_no = 0 WHERE id = $1', [conv]);
  await restored();
  await one.app.connections.check();
  await live.until(({ data }) => (data as { message: { resync: string } }).message.resync === 'RESTORED');
  await ana.send(conv, 'anew');
  expect((await live.next()).data).toEqual({ message: { resync: null, head: 3, conv: { head: 3 } } });
  await live.socket.close();
});
