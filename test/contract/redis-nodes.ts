// Nodes around a private Redis, for the tests of the Redis bus. After every test: all nodes gone, nothing ever rejected
// unhandled.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest';
import type { HintBus } from '../../src/hints/bus.js';
import { createRedisBus, type RedisBusOptions } from '../../src/hints/redis.js';
import { startRedis, type TestRedis } from '../support/redis.js';

export let redis: TestRedis;
export let prefix: string;
const buses: HintBus[] = [];
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);

/** To be called once at the top of a test file. */
export function withPrivateRedis(): void {
  beforeAll(async () => {
    process.on('unhandledRejection', onUnhandled);
    redis = await startRedis();
  });

  beforeEach(() => {
    prefix = `tm:${randomUUID()}:`;
  });

  afterEach(async () => {
    await Promise.all(buses.splice(0).map((bus) => bus[Symbol.asyncDispose]()));
    expect(unhandled).toEqual([]);
  });

  afterAll(async () => {
    await redis[Symbol.asyncDispose]();
    process.off('unhandledRejection', onUnhandled);
  });
}

export function node(options: Partial<RedisBusOptions> = {}): HintBus {
  const log = { info: () => undefined, warn: () => undefined };
  const bus = createRedisBus({ url: redis.url, prefix, log, ...options });
  buses.push(bus);
  return bus;
}

export async function until(check: () => void | Promise<void>): Promise<void> {
  await vi.waitFor(check, { timeout: 15_000, interval: 10 });
}

export const isUp = (...nodes: HintBus[]): Promise<void> =>
  until(() => {
    expect(nodes.map((bus) => bus.state)).toEqual(nodes.map(() => 'up'));
  });

export async function admin<T>(act: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(redis.url);
  try {
    return await act(client);
  } finally {
    client.disconnect();
  }
}
