// A node that has enough to do: who is turned away has had nothing run, and stock clients come through by themselves.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client/core';
import { RetryLink } from '@apollo/client/link/retry';
import { Client as UrqlClient, fetchExchange } from '@urql/core';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Config } from '../../src/config.js';
import type { HintBus } from '../../src/hints/bus.js';
import { createMemoryBus } from '../../src/hints/memory.js';
import * as documents from '../support/documents.js';
import { holdRows } from '../support/held-lock.js';
import { readMetrics } from '../support/metrics.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

const none = { atOnce: 1, maxWaiting: 0, maxWaitMs: 1_000 };
const admission: Config['admission'] = { handshakes: none, requests: { ...none, atOnce: 2 }, maxLatenessMs: Infinity };
const live = 'subscription { hints { __typename } }';
const isResync = { data: { hints: { __typename: 'Resync' } } };

let world: World;
let ana: Actor;
let conv: string;
/** While it is closed a handshake is under way for as long as it takes. */
const door = { open: Promise.resolve() };

beforeAll(async () => {
  const inner = createMemoryBus();
  const bus: HintBus = { ...inner, listen: (...asked) => door.open.then(() => inner.listen(...asked)) };
  world = await startWorld({ config: { admission, metricsPort: 0 }, overrides: { bus } });
  ana = await world.device('ana');
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
});
afterAll(() => world[Symbol.asyncDispose]());

const turnedAway = async (kind: string) =>
  (await readMetrics(world.app)).get(`tidemark_turned_away_total{kind="${kind}"}`) ?? NaN;

/** Runs `meanwhile` while one handshake occupies the node, then lets that one go on. */
async function whileOneConnects(meanwhile: () => Promise<void>): Promise<void> {
  let letGo: () => void = () => undefined;
  door.open = new Promise<void>((resolve) => (letGo = resolve));
  const first = world.app.socket((await world.device('ben')).credential);
  await new Promise((resolve) => first.ws.once('open', resolve));
  try {
    const before = await turnedAway('socket');
    // occupied once another is turned away
    await expect
      .poll(async () => {
        const other = world.app.socket(ana.credential);
        await Promise.race([other.closed, new Promise((resolve) => setTimeout(resolve, 50))]);
        other.ws.terminate();
        return turnedAway('socket');
      })
      .toBeGreaterThan(before);
    await meanwhile();
  } finally {
    letGo();
    await first.ready;
    await first.close();
  }
}

/** Runs `meanwhile` while two requests, as many as there may be, wait for a lock. */
async function whileTwoSend(meanwhile: () => Promise<void>): Promise<void> {
  const held = await holdRows(world.app.databaseUrl, 'SELECT 1 FROM conversations WHERE id = $1', [conv]);
  const sends = [ana.send(conv, 'one'), ana.send(conv, 'two')];
  try {
    await expect.poll(async () => (await world.app.post(null, { query: '{ __typename }' })).status).toBe(503);
    await meanwhile();
  } finally {
    await held.letGo();
    await Promise.all(sends);
  }
}

it('[P5] [P6] while handshakes are under way a further socket is closed with 1013, a stream answered 503 with Retry-After', async () => {
  await whileOneConnects(async () => {
    const [sockets, streams] = [await turnedAway('socket'), await turnedAway('stream')];
    expect(await world.app.socket(ana.credential).closed).toEqual({ code: 1013, reason: 'Try Again Later' });
    const { response } = await world.app.sse(ana.credential, live);
    expect(response.status).toBe(503);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expect([await turnedAway('socket'), await turnedAway('stream')]).toEqual([sockets + 1, streams + 1]);
  });
  const socket = world.app.socket(ana.credential);
  await socket.ready;
  await socket.close();
});

it('[P6] a request beyond those under way is answered 503 before anything of it runs', async () => {
  await whileTwoSend(async () => {
    const before = await turnedAway('request');
    const response = await world.app.post(ana.credential, { query: documents.markRead, variables: { conv, seq: 1 } });
    expect(response.status).toBe(503);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toMatchObject({ retryable: true, retryAfterMs: expect.any(Number) as number });
    expect(body).not.toHaveProperty('errors');
    expect(await turnedAway('request')).toBe(before + 1);
    for (const probe of ['/healthz', '/readyz']) expect((await fetch(world.app.url + probe)).status).toBe(200);
  });
  expect((await ana.conv(conv)).read).toBe(0);
});

it('[P6] an open event stream takes no place of a request', async () => {
  const streams = [await world.app.sse(ana.credential, live), await world.app.sse(ana.credential, live)];
  for (const stream of streams) expect(await stream.next()).toMatchObject(isResync);
  await whileTwoSend(() => Promise.resolve());
  expect((await ana.conv(conv)).head).toBeGreaterThan(0);
  for (const stream of streams) stream.close();
});

it('[P5] the graphql-ws client comes through with the retries that it has by itself', async () => {
  const authorization = `Bearer ${ana.credential}`;
  const codes: unknown[] = [];
  const client = createWsClient({
    url: `${world.app.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
    on: { closed: (event) => codes.push((event as { code: number }).code) },
  });
  let first: Promise<unknown> | undefined;
  await whileOneConnects(async () => {
    first = client.iterate({ query: live }).next();
    await expect.poll(() => codes, { timeout: 20_000 }).toContain(1013);
  });
  expect(await first).toMatchObject({ value: isResync });
  await client.dispose();
});

it('[P5] the graphql-sse client comes through with the retries that it has by itself', async () => {
  const before = await turnedAway('stream');
  const authorization = `Bearer ${ana.credential}`;
  const client = createSseClient({ url: `${world.app.url}/graphql`, headers: { authorization } });
  let first: Promise<unknown> | undefined;
  await whileOneConnects(async () => {
    first = client.iterate({ query: live }).next();
    await expect.poll(() => turnedAway('stream'), { timeout: 20_000 }).toBeGreaterThan(before);
  });
  expect(await first).toMatchObject({ value: isResync });
  client.dispose();
});

const sendInput = () => ({ conv, clientId: fresh(), contentType: 'TEXT', content: { text: 'through' } });

it('[P6] Apollo with its RetryLink comes through, and what it sent is there once', async () => {
  const headers = { authorization: `Bearer ${ana.credential}` };
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.from([
      new RetryLink({ delay: { initial: 50 }, attempts: { max: 100 } }),
      new HttpLink({ uri: `${world.app.url}/graphql`, headers }),
    ]),
  });
  const before = await turnedAway('request');
  let sent: Promise<{ data?: unknown }> | undefined;
  await whileTwoSend(async () => {
    sent = client.mutate({ mutation: gql(documents.send), variables: { input: sendInput() } });
    await expect.poll(() => turnedAway('request')).toBeGreaterThan(before);
  });
  expect((await sent)?.data).toMatchObject({ send: { duplicate: false, event: { text: 'through' } } });
  client.stop();
});

it('[P6] urql is told of a network error, which is what its retryExchange repeats', async () => {
  const client = new UrqlClient({
    url: `${world.app.url}/graphql`,
    fetchOptions: { headers: { authorization: `Bearer ${ana.credential}` } },
    preferGetMethod: false,
    exchanges: [fetchExchange],
  });
  await whileTwoSend(async () => {
    const { error } = await client.mutation(documents.send, { input: sendInput() }).toPromise();
    expect(error?.networkError).toBeDefined();
    expect(error?.graphQLErrors).toEqual([]);
  });
});

it('[P5] [P6] while the process is late with its work nobody new is let in', async () => {
  await using late = await startWorld({ config: { admission: { ...admission, maxLatenessMs: 50 } } });
  const cho = await late.device('cho');
  const until = performance.now() + 500;
  while (performance.now() < until); // nothing else runs in this process
  expect((await late.app.post(cho.credential, { query: '{ __typename }' })).status).toBe(503);
  const again = performance.now() + 500;
  const socket = late.app.socket(cho.credential);
  await new Promise((resolve) => socket.ws.once('upgrade', resolve));
  while (performance.now() < again);
  expect(await socket.closed).toEqual({ code: 1013, reason: 'Try Again Later' });
  await expect
    .poll(async () => (await late.app.post(cho.credential, { query: '{ __typename }' })).status, { timeout: 20_000 })
    .toBe(200);
});
