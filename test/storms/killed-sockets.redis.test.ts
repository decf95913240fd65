// Two thousand sockets that end without a goodbye leave nothing behind.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { connectMany, registerMany } from '../support/many-devices.js';
import { startRedis } from '../support/redis.js';
import { startWorld } from '../support/world.js';

const [users, perUser] = [200, 10];

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

it('[H4] scenario 34: 2,000 sockets opened and killed: sinks, subscriptions, Redis channels and memory are as before', async () => {
  await using redis = await startRedis();
  const admin = new Redis(redis.url);
  await using world = await startWorld({ config: { redisUrl: redis.url } });
  const { deps, connections, url } = world.app;
  const credentials = await registerMany(deps.store.pool, users, perUser);
  /** All that is left of clients, once they have gone. */
  const left = async () => {
    const metrics = await deps.metrics.text();
    const numbers = metrics.matchAll(/^tidemark_(?:open_sockets|live_subscriptions\S*) (\d+)$/gmu);
    return {
      connections: connections.size,
      ...deps.bus.stats(),
      subscriptions: [...numbers].reduce((sum, [, value]) => sum + Number(value), 0),
      redisChannels: await admin.pubsub('CHANNELS', 'tidemark:u:*'),
    };
  };
  const nothing = { connections: 0, sinks: 0, channels: 0, subscriptions: 0, redisChannels: [] };
  const connectAndKill = async (some: readonly string[]) => {
    await using clients = connectMany(`${url}/graphql`, some);
    await clients.until(({ live }) => live === some.length, 90_000);
    expect(connections.size).toBe(some.length);
    expect((await left()).redisChannels.length).toBe(Math.min(users, some.length));
    await clients.kill();
    await expect.poll(left, { timeout: 30_000 }).toEqual(nothing);
  };
  const heapNow = () => {
    gc();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  await connectAndKill(credentials.slice(0, 200)); // what is made once is made now
  const before = heapNow();
  await connectAndKill(credentials);
  const grown = heapNow() - before;
  console.log(`2,000 sockets killed: ${grown.toFixed(1)} MiB more than before`);
  expect(grown).toBeLessThan(15);
  admin.disconnect();
}, 180_000);
