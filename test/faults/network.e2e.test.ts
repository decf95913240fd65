// The network loses connections without a word: between a client and its node, and between a node and Postgres. Both ends
// find out within their documented times, as they are in production, and all is well again by itself. (Between a node and
// Redis: test/contract/redis-outage.)
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { clientOf } from '../support/app.js';
import { readMetrics } from '../support/metrics.js';
import { outcomeOf, refusalOf } from '../support/outcome.js';
import { startProxy, type Proxy } from '../support/proxy.js';
import { Actor, type World } from '../support/world.js';
import { Cluster, type Node } from './cluster.js';
import { Device } from './device.js';
import { Ledger } from './ledger.js';
import { differences } from './verdict.js';

let cluster: Cluster;
let world: World;

beforeAll(async () => {
  cluster = await Cluster.start(1);
  world = cluster.world();
  await world.users('ana', 'ben', 'cho');
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

/** A device that lives behind a network of its own, live and right. */
async function deviceBehind(network: Proxy, node: Node, user: string): Promise<{ device: Device; ledger: Ledger }> {
  const name = `${user}-behind`;
  const { credential } = await world.device(user, name);
  const ledger = new Ledger();
  const device = new Device({ urlFrom: () => network.through(node.url) }, ledger, { user, name, credential, slot: 0 });
  await vi.waitUntil(() => device.badge !== null && device.resyncs > 0, 30_000);
  return { device, ledger };
}

/** expect.poll is not for tests that run side by side */
const becomes = (read: () => Promise<unknown>, expected: unknown, timeout: number) =>
  vi.waitFor(async () => expect(await read()).toEqual(expected), { timeout, interval: 200 });

const isRight = async (ledger: Ledger, device: Device, timeout: number) => {
  await becomes(() => differences(ledger, device), [], timeout);
  expect(ledger.violations).toEqual([]);
};

test.concurrent(
  '[H2] [H3] a router forgets its connections: client and node both notice, nothing stays behind',
  async () => {
    await using node = await started();
    await using network = await startProxy(() => node.url);
    const { device, ledger } = await deviceBehind(network, node, 'ben');
    await using client = device;
    // one that never comes back
    const gone = await world.device('cho');
    const socket = clientOf(network.through(node.url)).socket(gone.credential);
    await socket.ready;
    await socket.subscribe('subscription { hints { __typename } }').next();
    const open = async () => {
      const values = await readMetrics(node);
      const [sockets, hints] = ['tidemark_open_sockets', 'tidemark_live_subscriptions{field="hints"}'];
      return { sockets: values.get(sockets), hints: values.get(hints) };
    };
    expect(await open()).toEqual({ sockets: 2, hints: 2 });

    network.set('drop');
    network.set('pass');
    const ana = await world.device('ana');
    const { conv } = await ana.createConv({ members: ['ben'] });
    await ana.send(conv.id, 'said to nobody');
    expect(client.resyncs).toBe(1);
    // the client: a ping every 10 s, 5 s for its answer, then the stock pause before it comes back
    await vi.waitUntil(() => client.resyncs === 2, 40_000);
    await isRight(ledger, client, 10_000);
    // the node: a ping every 12 s, terminated at the next one
    await becomes(open, { sockets: 1, hints: 1 }, 40_000);
  },
);

test.concurrent(
  '[P6] [H3] Postgres is out of reach: requests end within 20 s, retryable, and the node comes back with it',
  async () => {
    await using network = await startProxy(() => cluster.postgres.url);
    await using node = await started({ DATABASE_URL: network.through(cluster.postgres.url) });
    await using direct = await startProxy(() => node.url);
    const { device, ledger } = await deviceBehind(direct, node, 'cho');
    await using client = device;
    const ana = await world.device('ana');
    const { conv } = await ana.createConv({ members: ['cho'] });
    const behind = new Actor({ ...ana.app, ...clientOf(node.url) }, ana.credential);
    // more than the pool has, so that some are running, some begin, and some wait
    await Promise.all(Array.from({ length: 12 }, () => behind.conv(conv.id)));

    network.set('drop');
    const since = performance.now();
    const asked = Array.from({ length: 4 }, () => [
      refusalOf(behind.send(conv.id, 'later')),
      refusalOf(behind.markRead(conv.id, 2)),
      refusalOf(behind.conv(conv.id)),
      refusalOf(behind.catchUp(conv.id)),
    ]).flat();
    await ana.send(conv.id, 'over the other node');
    expect((await fetch(`${node.url}/readyz`)).status).toBe(503);
    for (const { code, extensions } of await Promise.all(asked)) {
      expect({ code, ...extensions }).toMatchObject({
        code: 'INTERNAL_SERVER_ERROR',
        retryable: true,
        reason: 'UNAVAILABLE',
      });
    }
    expect(performance.now() - since).toBeLessThan(20_000);

    network.set('pass');
    // what the lost network still holds of them is let go in the same time; nothing has to be done
    await becomes(() => outcomeOf(behind.send(conv.id, 'again')), 'ok', 20_000);
    expect((await fetch(`${node.url}/readyz`)).status).toBe(200);
    await isRight(ledger, client, 30_000);
    // the connection that holds its lease is still one of the lost
    expect(await node.process.kill('SIGTERM')).toMatchObject({ code: 0 });
  },
);

async function started(env: Readonly<Record<string, string>> = {}): Promise<Node & AsyncDisposable> {
  const node = await cluster.launch(env);
  return { ...node, [Symbol.asyncDispose]: () => node.process[Symbol.asyncDispose]() };
}
