// Two nodes, a Redis and a Postgres, six devices that never rest; each test breaks one thing under them. Nothing that was
// acknowledged is lost, and once the load ends every client is right with nothing more happening.
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newSeed, seeded } from '../support/seeded.js';
import { Cluster } from './cluster.js';
import { figuresOf, tableOf, type Survived } from './report.js';
import { judge } from './verdict.js';
import { populate, startLoad, type FaultWorld } from './world.js';

const seed = Number(process.env['TIDEMARK_SEED'] ?? newSeed());
const random = seeded(seed);
const survived: Survived[] = [];
let cluster: Cluster;
let world: FaultWorld;

beforeAll(async () => {
  cluster = await Cluster.start();
  world = await populate(cluster);
});
afterAll(async () => {
  console.log(`seed ${String(seed)}\n${tableOf(await figuresOf(world, survived))}`);
  await world[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
});

const acknowledged = () => Object.values(world.ledger.acknowledged).reduce((sum, count) => sum + count);

/** So much that was asked for after now has been answered: the service is at work. */
async function atWork(operations = 40): Promise<void> {
  const before = acknowledged();
  await expect.poll(acknowledged, { timeout: 30_000, interval: 20 }).toBeGreaterThan(before + operations);
}

async function survive(fault: string, happen: () => Promise<void>): Promise<void> {
  const load = startLoad(world, random);
  await atWork();
  await happen();
  await atWork();
  await load.stop();
  const { violations, rightAfterMs } = await judge(world);
  survived.push({ fault, rightAfterMs });
  expect(violations.slice(0, 20)).toEqual([]);
}

test('[H3] [L1] [R3] nothing breaks: the measure of the others', () => survive('none', () => Promise.resolve()));

test('[H3] [L1] [R5] one of two nodes is killed', async () => {
  await survive('kill -9 of a node', async () => {
    await cluster.endNode(1, 'SIGKILL');
    await atWork();
    await cluster.startNode(1);
  });
});

test('[L1] [R3] a node is drained: it loses nothing that it acknowledged and ends in order', async () => {
  await survive('SIGTERM of a node', async () => {
    expect(await cluster.endNode(0, 'SIGTERM')).toMatchObject({ code: 0 });
    await atWork();
    await cluster.startNode(0);
  });
});

test('[H3] scenario 32: Redis is killed for 5 s during the sends, and comes back empty', async () => {
  await survive('kill -9 of Redis, 5 s', async () => {
    await cluster.redis.kill('SIGKILL');
    await Promise.all([pause(5_000), atWork(100)]);
    await cluster.redis.restart();
  });
});

test('[H3] Redis does not answer for 6 s', async () => {
  await survive('SIGSTOP of Redis, 6 s', async () => {
    await cluster.redis.kill('SIGSTOP');
    await Promise.all([pause(6_000), atWork(100)]);
    await cluster.redis.kill('SIGCONT');
  });
});

test('[H3] scenario 30: Redis is flushed', async () => {
  await survive('FLUSHALL', () => cluster.redis.flush());
});

test('[L1] [R3] [D1] Postgres crashes and starts again', async () => {
  await survive('crash of Postgres', async () => {
    await cluster.postgres.stop('immediate');
    await cluster.postgres.start();
  });
});
