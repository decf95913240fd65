// One ioredis connection of the hint bus: comes back by itself for ever, keeps nothing for later, logs an outage once.
import { Redis, type RedisOptions } from 'ioredis';
import type { BusLog } from './bus.js';

/** How long a peer may take to say goodbye; one that vanished never does. */
const DISCONNECT_MS = 500;

export function connectRedis(url: string, name: string, log: BusLog, options: RedisOptions = {}): Redis {
  const redis = new Redis(url, {
    ...options,
    connectionName: `tidemark-${name}`, // as CLIENT LIST shows it
    // While it is away commands fail at once, here: nothing queues up, nothing is sent late or twice.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    keepAlive: 10_000,
    connectTimeout: 5_000,
    disconnectTimeout: DISCONNECT_MS,
    // Spread, so that not all nodes come back in the same moment.
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 6), 2_000) * (0.5 + Math.random() / 2),
  });
  let told = '';
  redis.on('error', (error: Error) => {
    if (error.message !== told)
      log.warn({ reason: error.message, connection: name }, 'Redis cannot be reached; trying again');
    told = error.message;
  });
  redis.on('ready', () => (told = ''));
  return redis;
}

export async function endRedis(redis: Redis): Promise<void> {
  if (redis.status === 'end') return;
  // One that waits between two attempts has no socket whose end would be told.
  const hasSocket = redis.status !== 'reconnecting' && redis.status !== 'close';
  const ended = new Promise((resolve) => redis.once('end', resolve));
  redis.disconnect();
  if (hasSocket) await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 2 * DISCONNECT_MS).unref())]);
}
