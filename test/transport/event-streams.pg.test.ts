// Subscriptions as server-sent events: the same hints, the same rules, an end by destruction.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GraphQLAnswer } from '../support/app.js';
import * as documents from '../support/documents.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor;
let conv: string;

beforeAll(async () => {
  world = await startWorld();
  ana = await world.device('ana', 'ana-phone');
  conv = (await ana.createConv({ title: 'Harbour', members: ['ben'] })).conv.id;
});
afterAll(() => world[Symbol.asyncDispose]());

const code = ({ errors }: GraphQLAnswer) => errors?.[0]?.extensions?.['code'];
const live = 'subscription { message { resync seq event { text } } }';

it('[H2] a stream begins with a resync and goes on with what happens', async () => {
  const stream = await world.app.sse(ana.credential, live);
  expect(stream.response.headers.get('content-type')).toContain('text/event-stream');
  expect((await stream.next()).data).toEqual({ message: { resync: 'START', seq: null, event: null } });
  const { event } = await ana.send(conv, 'High tide');
  expect((await stream.next()).data).toEqual({
    message: { resync: null, seq: event.seq, event: { text: 'High tide' } },
  });
  stream.close();
});

it('[I4] [P5] revoking a device destroys its stream, and the next request says why', async () => {
  const lost = await world.device('ana', 'ana-lost');
  const stream = await world.app.sse(lost.credential, live);
  await stream.next();
  await ana.ask(documents.revokeDevice, { deviceId: 'ana-lost' });
  expect(await stream.ended).toBe('cut');
  const again = await world.app.sse(lost.credential, live);
  expect(code(await again.next())).toBe('UNAUTHENTICATED');
});

it('[I7] without a credential a stream says UNAUTHENTICATED, the service key is FORBIDDEN', async () => {
  expect(code(await (await world.app.sse(null, live)).next())).toBe('UNAUTHENTICATED');
  expect(code(await (await world.app.sse(world.app.serviceKey, live)).next())).toBe('FORBIDDEN');
});

it('[P6] a client that does not accept event streams is told so, and nothing is left running', async () => {
  const response = await world.app.post(ana.credential, { query: live });
  expect(response.status).toBe(406);
  expect(code((await response.json()) as GraphQLAnswer)).toBe('BAD_USER_INPUT');
  await expect.poll(() => world.app.deps.bus.stats().sinks).toBe(0);
});

it('[H4] a client that leaves, also in the middle of subscribing, leaves nothing behind', async () => {
  const streams = await Promise.all(Array.from({ length: 10 }, () => world.app.sse(ana.credential, live)));
  for (const stream of streams) {
    await stream.next();
    stream.close();
  }
  const cut = Array.from({ length: 10 }, async (_, index) => {
    const abort = new AbortController();
    const headers = { authorization: `Bearer ${ana.credential}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ query: live });
    const url = `${world.app.url}/graphql`;
    const answer = fetch(url, { method: 'POST', headers, body, signal: abort.signal });
    for (let turn = 0; turn < index; turn++) await new Promise(setImmediate);
    abort.abort();
    await answer.catch(() => undefined);
  });
  await Promise.all(cut);
  await expect.poll(() => world.app.connections.size).toBe(0);
  await expect.poll(() => world.app.deps.bus.stats().sinks).toBe(0);
});
