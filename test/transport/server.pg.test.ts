// The HTTP server around GraphQL: CORS, health, request ids, and a shutdown that finishes what has begun.
import http, { request } from 'node:http';
import { expect, it } from 'vitest';
import { FailpointGate } from '../model/failpoint-gate.js';
import { startApp, type GraphQLAnswer } from '../support/app.js';
import { emptyDatabase } from '../support/postgres.js';
import { startWorld } from '../support/world.js';

const allowed = 'https://app.example.org';
const ask = { query: '{ __typename }' };

it('[P4] CORS answers allowed origins only, and never allows cookies', async () => {
  await using app = await startApp({ config: { allowedOrigins: [allowed] } });
  const from = async (origin: string) => (await app.post(null, ask, { origin })).headers;
  expect((await from(allowed)).get('access-control-allow-origin')).toBe(allowed);
  expect((await from(allowed)).get('access-control-allow-credentials')).toBeNull();
  expect((await from('https://evil.example.org')).get('access-control-allow-origin')).toBeNull();
  expect((await from('http://localhost:4000')).get('access-control-allow-origin')).toBeNull();
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
  const preflight = (origin: string) =>
    fetch(`${app.url}/graphql`, { method: 'OPTIONS', headers: { origin, ...asked } });
  const yes = await preflight(allowed);
  expect(yes.status).toBe(204);
  expect(yes.headers.get('access-control-allow-headers')).toContain('authorization');
  expect((await preflight('https://evil.example.org')).headers.get('access-control-allow-headers')).toBeNull();
});

it('[P4] without ALLOWED_ORIGINS and without the demo no page may ask', async () => {
  await using app = await startApp();
  for (const origin of ['http://localhost:4000', allowed]) {
    expect((await app.post(null, ask, { origin })).headers.get('access-control-allow-origin')).toBeNull();
  }
});

it('answers carry a request id, the client’s own when it is harmless', async () => {
  await using app = await startApp();
  const idOf = async (headers: Record<string, string>) =>
    (await app.post(null, ask, headers)).headers.get('x-request-id');
  expect(await idOf({})).toMatch(/^[0-9a-f-]{36}$/u);
  expect(await idOf({ 'x-request-id': 'trace-1.a_b' })).toBe('trace-1.a_b');
  expect(await idOf({ 'x-request-id': 'a b"c' })).toMatch(/^[0-9a-f-]{36}$/u);
});

it('[P2] neither a strange path nor a strange Host is answered with a stack', async () => {
  await using app = await startApp();
  for (const [path, host] of [
    ['//', 'x'],
    ['/graphql?query={', 'a b'],
    ['/graphql?query=%7B__typename%7D&variables=%7B', 'x'],
    ['/graphql/..', ':::'],
    ['http://[/graphql', 'x'],
  ] as const) {
    const text = await rawGet(app.port, path, host);
    expect(text).not.toMatch(/\bat .+:\d+:\d+|node_modules/u);
  }
});

function rawGet(port: number, path: string, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path, headers: { host } }, (res) => {
      let text = '';
      res.on('data', (chunk: Buffer) => (text += chunk.toString()));
      res.on('end', () => {
        resolve(`${String(res.statusCode)} ${text}`);
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

it('/readyz says what is wrong, /healthz only that the process is up', async () => {
  await using app = await startApp();
  const ready = async () => {
    const response = await fetch(`${app.url}/readyz`);
    return { status: response.status, body: (await response.json()) as { problems: string[]; hints: string } };
  };
  expect(await ready()).toMatchObject({ status: 200, body: { problems: [], hints: 'up' } });
  await app.deps.store.pool.query(
    'DELETE FROM _prisma_migrations WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations)',
  );
  const { status, body } = await ready();
  expect(status).toBe(503);
  expect(body.problems[0]).toContain('tidemark migrate');
  expect((await fetch(`${app.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${app.url}/nothing`)).status).toBe(404);
});

const lineOf = (problem: Promise<unknown>) =>
  problem.then(
    () => 'started',
    (error: unknown) => (error as Error).message,
  );

it('[H6] a second process on the same database refuses to start without Redis', async () => {
  await using app = await startApp();
  expect(await lineOf(startApp({ databaseUrl: app.databaseUrl }))).toBe(
    'another Tidemark runs on this database; two nodes need REDIS_URL',
  );
});

it('a taken port is one plain line', async () => {
  await using app = await startApp();
  expect(await lineOf(startApp({ config: { port: app.port } }))).toBe(
    `127.0.0.1:${String(app.port)} is taken by another program: set PORT`,
  );
});

it('a database that lacks a migration is one plain line', async () => {
  await using database = await emptyDatabase();
  expect(await lineOf(startApp({ databaseUrl: database.url }))).toMatch(
    /^the database lacks .+: run `tidemark migrate`$/u,
  );
});

it('a database that does not answer is one plain line', async () => {
  const gone = lineOf(startApp({ databaseUrl: 'postgresql://ana:secret@127.0.0.1:1/tidemark' }));
  expect(await gone).toMatch(/^cannot reach Postgres on 127\.0\.0\.1:1: /u);
  expect(await gone).not.toContain('secret');
});

it('[P5] [P6] a shutdown finishes what runs, sends the waiting elsewhere and takes nothing new', async () => {
  const gate = new FailpointGate();
  const world = await startWorld({ overrides: { failpoint: gate.failpoint } });
  const ana = await world.device('ana');
  const { conv } = await ana.createConv({ members: ['ben'] });
  const socket = world.app.socket(ana.credential);
  await socket.ready;
  const stream = await world.app.sse(ana.credential, 'subscription { message { resync } }');
  await stream.next();
  const { reached, letGo } = gate.stopAt('before commit');
  const running = ana.send(conv.id, 'still under way');
  await reached;

  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const late = await keptAlive(agent, world.app.port);
  const stopped = world[Symbol.asyncDispose]();
  expect(await socket.closed).toEqual({ code: 1012, reason: 'Service Restart' });
  expect(await stream.ended).toBe('cut');
  await expect(fetch(`${world.app.url}/healthz`)).rejects.toThrow();
  expect(await late()).toMatch(/^503 1|ECONN|hang up/u);

  letGo();
  expect((await running).event.text).toBe('still under way');
  await stopped;
  agent.destroy();
});

/** A connection that has been used once; asks again on it when called. */
async function keptAlive(agent: http.Agent, port: number): Promise<() => Promise<string>> {
  const get = () =>
    new Promise<string>((resolve) => {
      const sent = request({ agent, port, host: '127.0.0.1', path: '/healthz' }, (res) => {
        res.resume();
        res.on('end', () => {
          resolve(`${String(res.statusCode)} ${String(res.headers['retry-after'])}`);
        });
      });
      sent.on('error', (error) => {
        resolve(error.message);
      });
      sent.end();
    });
  await get();
  return get;
}

it('[P5] what does not end in time is cut off', async () => {
  const gate = new FailpointGate();
  const world = await startWorld({ config: { drainMs: 200 }, overrides: { failpoint: gate.failpoint } });
  const ana = await world.device('ana');
  const { conv } = await ana.createConv({ members: ['ben'] });
  const { reached, letGo } = gate.stopAt('before commit');
  const running = ana.send(conv.id, 'too slow').then(
    () => 'answered',
    () => 'cut',
  );
  await reached;
  const stopped = world[Symbol.asyncDispose]();
  expect(await running).toBe('cut');
  letGo();
  await stopped;
});

it('[P6] GET asks queries, never mutations', async () => {
  await using app = await startApp();
  const get = (query: string) => fetch(`${app.url}/graphql?query=${encodeURIComponent(query)}`);
  expect(await (await get('{ __typename }')).json()).toEqual({ data: { __typename: 'Query' } });
  const refused = await get('mutation { leave(conv: "x") { conv { id } } }');
  expect(refused.status).toBe(405);
  const { errors } = (await refused.json()) as GraphQLAnswer;
  expect(errors?.[0]?.extensions?.['code']).toBe('BAD_USER_INPUT');
});
