// Starts the servers that a kind of test needs, when that kind is part of the run. The kinds of one run share them:
// each project loads this file anew, so what is running is kept on globalThis.
import type { TestProject } from 'vitest/node';
import { startTestPostgres } from './postgres.js';
import { startSharedRedis } from './redis.js';

interface Shared {
  server: Promise<AsyncDisposable>;
  users: number;
}

const KEY = Symbol.for('tidemark.test.servers');
const world = globalThis as Record<symbol, Map<string, Shared> | undefined>;
const servers = (world[KEY] ??= new Map<string, Shared>());

async function share<T extends AsyncDisposable>(name: string, start: () => Promise<T>): Promise<T> {
  const shared = servers.get(name) ?? { server: start(), users: 0 };
  servers.set(name, shared);
  shared.users += 1;
  return (await shared.server) as T;
}

async function release(name: string): Promise<void> {
  const shared = servers.get(name);
  if (!shared) return;
  shared.users -= 1;
  if (shared.users > 0) return;
  servers.delete(name);
  await (await shared.server)[Symbol.asyncDispose]();
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { adminUrl, template, strategy } = await share('postgres', startTestPostgres);
  project.provide('postgres', { adminUrl, template, strategy });
  const needsRedis = project.name !== 'pg';
  if (needsRedis) project.provide('redisUrl', (await share('redis', startSharedRedis)).url);
  return async () => {
    if (needsRedis) await release('redis');
    await release('postgres');
  };
}
