// What the numbers say when Redis goes away and comes back.
import { expect, it } from 'vitest';
import { listenToMessages } from '../support/live-hints.js';
import { readMetrics } from '../support/metrics.js';
import { startRedis } from '../support/redis.js';
import { startWorld } from '../support/world.js';

it('[H3] a Redis that is killed shows as failed publishes and a bus that is down, then as resyncs', async () => {
  await using redis = await startRedis();
  await using world = await startWorld({ config: { metricsPort: 0, redisUrl: redis.url } });
  const value = async (series: string) => (await readMetrics(world.app)).get(series);
  const [ana, ben] = await Promise.all([world.device('ana'), world.device('ben')]);
  const conv = (await ana.createConv({ members: ['ben', 'cho'] })).conv.id;
  const live = await listenToMessages(ben);
  expect(await value('tidemark_hint_bus_up')).toBe(1);
  expect(await value('tidemark_hint_publish_failures_total')).toBe(0);
  expect(await value('tidemark_resyncs_total{reason="BUS"}')).toBe(0);

  await redis.kill('SIGKILL');
  await expect.poll(() => value('tidemark_hint_bus_up')).toBe(0);
  await ana.send(conv, 'into the void');
  await expect.poll(() => value('tidemark_hint_publish_failures_total')).toBe(3);

  await redis.restart();
  await live.until(({ resync }) => resync === 'BUS', 20_000);
  expect(await value('tidemark_resyncs_total{reason="BUS"}')).toBeGreaterThanOrEqual(1);
  await expect.poll(() => value('tidemark_hint_bus_up')).toBe(1);
  await live.socket.close();
});
