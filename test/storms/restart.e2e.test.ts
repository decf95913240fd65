// A node with two thousand devices is restarted: all come back by themselves, are live, and know what they missed.
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { startApp } from '../support/app.js';
import { connectMany, registerMany, type Seen } from '../support/many-devices.js';
import { freshDatabase } from '../support/postgres.js';
import { startTidemark } from '../support/process.js';
import { sharedRedisUrl } from '../support/redis.js';
import { World, type Actor } from '../support/world.js';

/** Fewer than this are for a look; more take longer than the ordinary run has. */
const users = Number(process.env['TIDEMARK_STORM_USERS'] ?? 200);
const perUser = 10;
const all = users * perUser;
const withinMs = 180_000;

it('[H3] [P5] [P6] 2,000 devices of a node that is restarted are all live again and right, by stock clients’ own retries', async () => {
  await using database = await freshDatabase();
  const shared = { redisUrl: sharedRedisUrl(), redisPrefix: `storm ${randomUUID()}:` };
  // another node, on which life goes on
  await using other = new World(await startApp({ databaseUrl: database.url, config: shared }));
  const credentials = await registerMany(other.app.deps.store.pool, users, perUser);
  await other.users('ana');
  const ana = await other.device('ana');
  const convs = await createGroups(ana);
  const port = await freePort();
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: shared.redisUrl,
    REDIS_PREFIX: shared.redisPrefix,
    PORT: String(port),
    LOG_LEVEL: 'warn',
  };
  const url = `http://127.0.0.1:${String(port)}`;

  await using first = startTidemark([], env);
  await isReady(url);
  await using devices = connectMany(`${url}/graphql`, credentials);
  const startedAt = performance.now();
  await devices.until(areRight(2), withinMs);
  tell(`${String(all)} devices connected at once`, startedAt, devices.seen());

  for (const conv of convs) await ana.send(conv, 'while all are live');
  await devices.until(({ byHint }) => byHint['3'] === all, withinMs);

  const before = devices.seen();
  const stoppedAt = performance.now();
  expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
  for (const conv of convs) await ana.send(conv, 'while the node is away');
  await using second = startTidemark([], env);
  await isReady(url);
  const readyAt = performance.now();
  await devices.until(areRight(4), withinMs);
  tell(`node restarted (away for ${seconds(stoppedAt, readyAt)} s)`, readyAt, devices.seen(), before);
  for (const conv of convs) await ana.send(conv, 'while all are live again');
  await devices.until(({ byHint }) => byHint['5'] === all, withinMs);
  expect(devices.seen().fatal).toEqual([]);
  expect(await second.kill('SIGTERM')).toMatchObject({ code: 0 });
}, 600_000);

/** All are live, have asked since, and were told of this head. */
const areRight =
  (head: number) =>
  ({ live, byHead }: Seen) =>
    live === all && byHead[head] === all;

async function createGroups(ana: Actor): Promise<string[]> {
  const convs: string[] = [];
  for (let from = 1; from <= users; from += 20) {
    const members = Array.from({ length: Math.min(20, users - from + 1) }, (_, n) => `u${String(from + n)}`);
    convs.push((await ana.createConv({ members })).conv.id);
  }
  return convs;
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const isReady = (url: string) =>
  expect
    .poll(async () => (await fetch(`${url}/readyz`).catch(() => null))?.status, { timeout: 60_000, interval: 100 })
    .toBe(200);

const seconds = (from: number, to: number) => ((to - from) / 1_000).toFixed(1);

function tell(what: string, from: number, { closes, statuses }: Seen, before?: Seen): void {
  const since = (now: Seen['closes'], then: Seen['closes'] = {}) =>
    Object.entries(now)
      .map(([key, count]) => [key, count - (then[key] ?? 0)] as const)
      .filter(([, count]) => count > 0)
      .map(([key, count]) => `${key}: ${String(count)}`)
      .join(', ');
  console.log(
    `${what}: all live and right after ${seconds(from, performance.now())} s; ` +
      `closes ${since(closes, before?.closes) || 'none'}; queries ${since(statuses, before?.statuses)}`,
  );
}
