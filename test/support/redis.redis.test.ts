// The test Redis itself: what other tests do to it must be true.
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { sharedRedisUrl, startRedis } from './redis.js';

const ask = async (url: string, ...command: [string, ...string[]]) => {
  const redis = new Redis(url, { retryStrategy: null, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined);
  try {
    return await redis.call(...command);
  } finally {
    redis.disconnect();
  }
};

it('a private Redis can be killed and comes back empty on the same port', async () => {
  await using redis = await startRedis();
  await ask(redis.url, 'SET', 'seen', '1');
  const before = redis.pid;
  await redis.kill();
  await expect(ask(redis.url, 'PING')).rejects.toThrow();
  await redis.restart();
  expect(redis.pid).not.toBe(before);
  expect(await ask(redis.url, 'GET', 'seen')).toBeNull();
});

it('a private Redis can be frozen and thawed', async () => {
  await using redis = await startRedis();
  await redis.kill('SIGSTOP');
  const answer = ask(redis.url, 'PING');
  await redis.kill('SIGCONT');
  expect(await answer).toBe('PONG');
});

it('the shared Redis answers', async () => {
  expect(await ask(sharedRedisUrl(), 'PING')).toBe('PONG');
});
