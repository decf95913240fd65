// Two nodes on one database and one Redis: a user's devices may be on either.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listenToAll, listenToMessages, listenToReads } from '../support/live-hints.js';
import { startApp, type TestApp } from '../support/app.js';
import { freshDatabase, type TestDatabase } from '../support/postgres.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { listenToSignals, signal } from '../support/signals.js';
import { Actor, fresh, World } from '../support/world.js';

let database: TestDatabase;
let redis: TestRedis;
let one: World;
let two: TestApp;

/** The same device, connected to the other node. */
const onTwo = (actor: Actor) => new Actor(two, actor.credential);

beforeAll(async () => {
  [database, redis] = await Promise.all([freshDatabase(), startRedis()]);
  const options = { databaseUrl: database.url, config: { redisUrl: redis.url } };
  one = new World(await startApp(options));
  two = await startApp(options);
  await one.users('ana', 'ben', 'cho');
});
afterAll(async () => {
  await two[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const pair = async () => {
  const [ana, phone, laptop] = await Promise.all([one.device('ana'), one.device('ben'), one.device('ben')]);
  return { ana, phone, laptop: onTwo(laptop), conv: (await ana.createConv({ members: ['ben'] })).conv.id };
};

test('[H6] a hint made on one node reaches the devices on both', async () => {
  const { ana, phone, laptop, conv } = await pair();
  const lives = await Promise.all([listenToAll(phone), listenToAll(laptop)]);
  const { event } = await ana.send(conv, 'from one');
  for (const live of lives) expect(await live.next()).toMatchObject({ seq: event.seq });
  await laptop.markRead(conv, event.seq);
  for (const live of lives) expect(await live.next()).toMatchObject({ __typename: 'ReadHint', read: event.seq });
  await Promise.all(lives.map((live) => live.socket.close()));
});

test('[R4] read on the phone, and the laptop’s badge on the other node clears', async () => {
  const { ana, phone, laptop, conv } = await pair();
  const before = (await laptop.badge()).unread;
  await ana.send(conv, 'one');
  const badge = await two.subscribe(laptop.credential, `subscription { badgeChanged { unread } }`);
  await badge.until(({ data }) => (data?.['badgeChanged'] as { unread: number }).unread === before + 1);
  await phone.markRead(conv, 3);
  await badge.until(({ data }) => (data?.['badgeChanged'] as { unread: number }).unread === before);
  expect((await laptop.conv(conv)).delivered).toBe(0);
  await badge.socket.close();
});

test('[R5] scenario 8: what was read on one node is read on the other, every time', async () => {
  const { ana, phone, laptop, conv } = await pair();
  for (let turn = 0; turn < 100; turn++) {
    const { event } = await ana.send(conv, 'x');
    await phone.markRead(conv, event.seq);
    expect(await laptop.conv(conv)).toMatchObject({ read: event.seq, unread: 0 });
  }
});

test('[L3] scenario 27: one clientId on two nodes at once is one event', async () => {
  const { ana, conv } = await pair();
  const clientId = fresh();
  const both = [ana, onTwo(ana)];
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => (both[n % 2] ?? ana).send(conv, 'once', { clientId })),
  );
  expect(new Set(answers.map(({ event }) => event.seq))).toEqual(new Set([3]));
  expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
  expect((await ana.conv(conv)).head).toBe(3);
});

test('[X1] [X4] a signal and a broadcast made on one node reach the devices on both', async () => {
  const { ana, phone, laptop, conv } = await pair();
  const lives = [await listenToSignals(phone), await listenToSignals(laptop)];
  await signal(ana, conv, { contentType: 'CALL', content: { ring: true } });
  for (const live of lives) expect(await live.next()).toMatchObject({ contentType: 'CALL', content: { ring: true } });
  await one.service.ask('mutation { broadcast(content: { soon: 1 }) { content } }');
  for (const live of lives) expect(await live.next()).toMatchObject({ contentType: 'BROADCAST', content: { soon: 1 } });
});

test('[I4] a device revoked on one node is closed on the other', async () => {
  const { phone, laptop } = await pair();
  const live = await listenToReads(laptop);
  const { viewer } = await laptop.ask<{ viewer: { device: { id: string } } }>(`{ viewer { device { id } } }`);
  await phone.ask(`mutation ($id: ID!) { revokeDevice(deviceId: $id) { device { id } } }`, { id: viewer.device.id });
  expect(await live.socket.closed).toEqual({ code: 4401, reason: 'REVOKED' });
});

test('[H6] without Redis a second process refuses to start', async () => {
  const options = { databaseUrl: database.url, config: { redisUrl: null } };
  await expect(startApp(options)).rejects.toThrow('two nodes need REDIS_URL');
});

describe('while Redis is away', () => {
  test('[H3] [L1] scenario 30: sends, reads and syncs go on, and every device is told to look again', async () => {
    const { ana, phone, laptop, conv } = await pair();
    const lives = await Promise.all([listenToMessages(phone), listenToMessages(laptop)]);
    await redis.kill('SIGKILL');
    const sent = await Promise.all(Array.from({ length: 20 }, (_, n) => ana.send(conv, `away ${String(n)}`)));
    expect(sent.map(({ event }) => event.seq).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, n) => n + 3),
    );
    expect(await phone.markRead(conv, 22)).toMatchObject({ read: 22, unread: 0 });
    expect(await laptop.catchUp(conv)).toHaveLength(21);
    await redis.restart();
    for (const live of lives) await live.until(({ resync }) => resync === 'BUS', 30_000);
    const { event } = await ana.send(conv, 'back');
    for (const live of lives) expect(await live.until(({ seq }) => seq === event.seq)).toMatchObject({ seq: 23 });
    await Promise.all(lives.map((live) => live.socket.close()));
  });
});
