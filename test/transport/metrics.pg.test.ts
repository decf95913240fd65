// What the numbers at /metrics say after what happened, asked as Prometheus asks: over HTTP.
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { errorCodes } from '../../src/domain/errors.js';
import { listenToAll, listenToMessages } from '../support/live-hints.js';
import { readMetrics, seriesOf } from '../support/metrics.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor;
let ben: Actor;
let cho: Actor;
let conv: string;

beforeAll(async () => {
  world = await startWorld({ config: { metricsPort: 0 } });
  [ana, ben, cho] = await Promise.all([world.device('ana'), world.device('ben'), world.device('cho')]);
  conv = (await ana.createConv({ members: ['ben', 'cho'] })).conv.id;
});
afterAll(() => world[Symbol.asyncDispose]());

const now = () => readMetrics(world.app);
const value = async (series: string) => (await now()).get(series);

it('metrics are served on a port of their own, and nowhere unless asked for', async () => {
  expect((await fetch(`${world.app.url}/metrics`)).status).toBe(404);
  expect(new URL(world.app.metricsUrl ?? '').hostname).toBe('127.0.0.1');
  const response = await fetch(world.app.metricsUrl ?? '');
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect((await fetch(new URL('/graphql', world.app.metricsUrl ?? ''))).status).toBe(404);
  await using quiet = await startWorld();
  expect(quiet.app.metricsUrl).toBeNull();
});

it('a send to three members publishes three hints, and two subscribers get two', async () => {
  const lives = await Promise.all([listenToMessages(ben), listenToMessages(cho)]);
  const before = await now();
  const { event } = await ana.send(conv, 'one');
  await Promise.all(lives.map((live) => live.until(({ seq }) => seq === event.seq)));
  const after = await now();
  const rise = (series: string) => (after.get(series) ?? NaN) - (before.get(series) ?? NaN);
  expect(rise('tidemark_hints_published_total')).toBe(3);
  expect(rise('tidemark_hints_delivered_total')).toBe(2);
  expect(rise('tidemark_resyncs_total{reason="START"}')).toBe(0);
  expect(rise('tidemark_operation_duration_seconds_count{operation="send"}')).toBe(1);
  expect(after.get('tidemark_resyncs_total{reason="START"}')).toBeGreaterThanOrEqual(2);
  await Promise.all(lives.map((live) => live.socket.close()));
});

it('sockets and subscriptions, over WebSocket and event streams, return to where they were', async () => {
  const open = async () => {
    const all = await now();
    const fields = ['badgeChanged', 'hints', 'message', 'readChanged'];
    const live = fields.map((field) => all.get(`tidemark_live_subscriptions{field="${field}"}`));
    return [all.get('tidemark_open_sockets'), ...live];
  };
  await expect.poll(open).toEqual([0, 0, 0, 0, 0]);
  const hints = await listenToAll(ben);
  const message = hints.socket.subscribe('subscription { message { resync } }');
  const badge = hints.socket.subscribe('subscription { badgeChanged { unread } }');
  await Promise.all([message.next(), badge.next()]);
  const stream = await world.app.sse(cho.credential, 'subscription { readChanged { resync } }');
  await stream.next();
  expect(await open()).toEqual([1, 1, 1, 1, 1]);
  message.stop();
  await expect.poll(open).toEqual([1, 1, 1, 0, 1]);
  stream.close();
  hints.socket.ws.terminate();
  await expect.poll(open).toEqual([0, 0, 0, 0, 0]);
});

it('[H4] for a client that does not read, hints coalesce', async () => {
  const many = Array.from({ length: 100 }, (_, n) => `a${String(n)}: event { text }`).join(' ');
  const slow = await world.app.subscribe(ben.credential, `subscription { message { ${many} } }`);
  await slow.next();
  slow.socket.ws.pause();
  const before = (await value('tidemark_hints_coalesced_total')) ?? NaN;
  // some items of half a megabyte fill what the sockets hold between here and there
  for (let sent = 0; sent < 60 && (await value('tidemark_hints_coalesced_total')) === before; sent++) {
    await ana.send(conv, 'x'.repeat(4_000));
  }
  expect(await value('tidemark_hints_coalesced_total')).toBeGreaterThan(before);
  slow.socket.ws.terminate();
});

it('an operation is named by its root field, whatever the client calls it', async () => {
  await Promise.all([
    world.app.query(ana.credential, 'query Mine { b: badge { unread } }'),
    world.app.query(ana.credential, '{ badge { unread } viewer { id } }'),
    world.app.query(
      ana.credential,
      'query { ...R } fragment R on Query { ... { badge { unread } ...R2 } } fragment R2 on Query { __typename }',
    ),
    world.app.query(ana.credential, '{ __schema { queryType { name } } }'),
  ]);
  const all = await now();
  const count = (operation: string) => all.get(`tidemark_operation_duration_seconds_count{operation="${operation}"}`);
  expect([count('badge'), count('many'), count('introspection'), count('other')]).toEqual([2, 1, 1, 0]);
});

it('a thousand names of operations, paths and wrong codes add no series', async () => {
  const before = seriesOf(await now());
  const wild = async (n: number) => {
    const name = `Wild${String(n)}`;
    await world.app.post(null, { query: `query ${name} { __typename }`, operationName: name });
    if (n % 100 === 0) {
      await fetch(`${world.app.url}/${name}`);
      await world.app.query(ana.credential, `query ${name} { ${name} }`);
      await world.app.query(fresh(name), `query ${name} { conv(id: "${name}") { id } }`);
    }
  };
  for (let n = 0; n < 1_000; n += 20) await Promise.all(Array.from({ length: 20 }, (_, m) => wild(n + m)));
  expect(seriesOf(await now())).toEqual(before);
}, 120_000);

it('[P2] errors are counted by a code of the closed list, each once', async () => {
  const before = await now();
  await world.app.query(ana.credential, '{ nothing }');
  await world.app.query(ana.credential, '{ nothing }'); // the second time out of a cache
  await world.app.query(ana.credential, '{ conv(id: "nope") { id } }');
  await world.app.query(null, '{ viewer { id } }');
  const after = await now();
  const rises = Object.keys(errorCodes).map((code) => {
    const series = `tidemark_errors_total{code="${code}"}`;
    return [code, (after.get(series) ?? NaN) - (before.get(series) ?? NaN)] as const;
  });
  expect(Object.fromEntries(rises.filter(([, rise]) => rise !== 0))).toEqual({
    GRAPHQL_VALIDATION_FAILED: 2,
    NOT_MEMBER: 1,
    UNAUTHENTICATED: 1,
  });
});

it('who waits for a connection of the pool is seen while they wait', async () => {
  const { pool } = world.app.deps.store;
  const held = await Promise.all(Array.from({ length: 6 }, () => pool.connect()));
  const waiting = ana.badge();
  await expect.poll(() => value('tidemark_db_pool_waiting')).toBeGreaterThan(0);
  expect(await value('tidemark_db_pool_connections')).toBe(6);
  for (const client of held) client.release();
  await waiting;
  expect(await value('tidemark_db_pool_waiting')).toBe(0);
});

it('the process tells its event-loop delay, memory and processor time', async () => {
  const all = await now();
  expect(all.get('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  expect(all.get('process_resident_memory_bytes')).toBeGreaterThan(0);
  expect(all.get('process_cpu_seconds_total')).toBeGreaterThan(0);
});

it('a taken port of the metrics is one plain line', async () => {
  const port = Number(new URL(world.app.metricsUrl ?? '').port);
  const started = startWorld({ config: { metricsPort: port } });
  await expect(started).rejects.toThrow(`127.0.0.1:${String(port)} is taken by another program: set METRICS_PORT`);
});

it('a client that keeps its connection to the metrics does not hold up a stop', async () => {
  const other = await startWorld({ config: { metricsPort: 0 } });
  await new Promise((resolve, reject) => {
    request(other.app.metricsUrl ?? '', { headers: { connection: 'keep-alive' } }, (res) => {
      res.resume().on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
  await other[Symbol.asyncDispose]();
  await expect(fetch(other.app.metricsUrl ?? '')).rejects.toThrow();
});
