// A node that dies between the commit and its hints: the other node finds by itself what its devices were not told (H5).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientOf, startApp, type TestApp } from '../support/app.js';
import { listenToAll } from '../support/live-hints.js';
import { freshDatabase, type TestDatabase } from '../support/postgres.js';
import { startTidemark } from '../support/process.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { Actor, fresh, World } from '../support/world.js';

const everyMs = 500;
const graceMs = 300;
/** What is documented, and as much again for a machine that has other things to do. */
const boundMs = 2 * everyMs + graceMs + 10_000;

let database: TestDatabase;
let redis: TestRedis;
/** the node that lives, where ben's devices are */
let living: TestApp;
let world: World;
let ana: Actor;
let phone: Actor;
let laptop: Actor;

beforeAll(async () => {
  [database, redis] = await Promise.all([freshDatabase(), startRedis()]);
  const config = { redisUrl: redis.url, redelivery: { everyMs, graceMs } };
  living = await startApp({ databaseUrl: database.url, config });
  world = new World(living);
  await world.users('ana', 'ben');
  [ana, phone, laptop] = [await world.device('ana'), await world.device('ben'), await world.device('ben')];
});
afterAll(async () => {
  await living[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** Asks a node that is killed when the transaction has committed, before it has told anybody. */
async function onDyingNode(actor: Actor, act: (there: Actor) => Promise<unknown>): Promise<void> {
  await using node = startTidemark(['serve'], {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    TIDEMARK_FAILPOINT: 'before publish',
  });
  const [, url = ''] = await node.until(/(http:\/\/[^"/\s]+)/u);
  const there = new Actor({ ...living, ...clientOf(url) }, actor.credential);
  await expect(act(there)).rejects.toThrow();
  expect(await node.ended).toMatchObject({ signal: 'SIGKILL' });
}

type Row = Readonly<Record<string, unknown>>;
const cases: readonly [string, (id: string) => [Actor, (there: Actor) => Promise<unknown>], (row: Row) => boolean][] = [
  ['message', (id) => [ana, (there) => there.send(id, 'x')], ({ contentType, seq }) => contentType === 'TEXT' && seq === 3],
  ['read', (id) => [phone, (there) => there.markRead(id, 2)], ({ __typename, read }) => __typename === 'ReadHint' && read === 2],
  ['mute', (id) => [phone, (there) => there.setMuted(id, true)], ({ __typename }) => __typename === 'ConvHint'],
  ['kick', (id) => [ana, (there) => there.removeMember(id, 'ben')], ({ contentType }) => contentType === 'MEMBER_KICK'],
]; // prettier-ignore

describe.each(cases)('killed after a %s', (_, act, fits) => {
  test('[H5] [H1] the devices on the other node are told within the documented time', async () => {
    const { id } = (await ana.createConv({ members: ['ben'], clientId: fresh() })).conv;
    await laptop.ack(id, 2);
    const live = await listenToAll(laptop);
    await onDyingNode(...act(id));
    const row = await live.until((each) => fits(each) && (each['conv'] as { id: string }).id === id, boundMs);
    expect(row).toBeDefined();
    await live.socket.close();
  });
});
