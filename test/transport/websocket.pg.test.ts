// Sockets: who may open one, what may be asked over it, and how it ends (P5).
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { HintBus } from '../../src/hints/bus.js';
import { createMemoryBus } from '../../src/hints/memory.js';
import { startApp, type GraphQLAnswer } from '../support/app.js';
import * as documents from '../support/documents.js';
import { startWorld, World, type Actor } from '../support/world.js';

const allowed = 'https://app.example.org';
let world: World;
let ana: Actor;

beforeAll(async () => {
  world = await startWorld({ config: { allowedOrigins: [allowed] } });
  ana = await world.device('ana', 'ana-phone');
});
afterAll(() => world[Symbol.asyncDispose]());

const code = ({ errors }: GraphQLAnswer) => errors?.[0]?.extensions?.['code'];
const live = 'subscription { hints { __typename } }';

async function openSocket(actor = ana) {
  const socket = world.app.socket(actor.credential);
  await socket.ready;
  return socket;
}

it.each(['https://evil.example.org', 'http://localhost:4000', 'null', `${allowed}.evil.example.org`])(
  '[P4] a page of %s cannot open a socket',
  async (origin) => {
    await expect(world.app.socket(ana.credential, { origin }).ready).rejects.toThrow('403');
  },
);

it('[P4] a page of an allowed origin can, and so can what is no page', async () => {
  const page = world.app.socket(ana.credential, { origin: allowed });
  await page.ready;
  await page.close();
  await (await openSocket()).close();
});

it('[P4] there is no socket at any other path', async () => {
  const ws = new WebSocket(`${world.app.url.replace('http', 'ws')}/live`, 'graphql-transport-ws');
  await expect(new Promise((_, reject) => ws.on('error', reject))).rejects.toThrow('404');
});

it.each([
  ['a syntax error', 'subscription {', 'GRAPHQL_PARSE_FAILED'],
  ['an unknown field', 'subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED'],
  ['a query', '{ viewer { id } }', 'BAD_USER_INPUT'],
  ['a mutation', 'mutation { leave(conv: "x") { conv { id } } }', 'BAD_USER_INPUT'],
  ['introspection', '{ __schema { queryType { name } } }', 'BAD_USER_INPUT'],
  ['too many tokens', `subscription { ${'__typename '.repeat(5_000)} }`, 'BAD_USER_INPUT'],
])('[P1] %s is answered with an error and the socket stays', async (_, document, expected) => {
  const socket = await openSocket();
  const answer = await socket.subscribe(document).next();
  expect(code(answer)).toBe(expected);
  expect(answer.errors?.[0]?.extensions).toMatchObject({ retryable: false });
  expect(answer.errors?.[0]?.extensions).not.toHaveProperty('http');
  expect((await socket.subscribe(live).next()).data).toEqual({ hints: { __typename: 'Resync' } });
  await socket.close();
});

it('[P1] a variable of the wrong form is BAD_USER_INPUT', async () => {
  const socket = await openSocket();
  const document = 'subscription ($skip: Boolean!) { hints { __typename @skip(if: $skip) ... on Resync { reason } } }';
  expect(code(await socket.subscribe(document, { skip: 'perhaps' }).next())).toBe('BAD_USER_INPUT');
  await socket.close();
});

it('[P1] one socket carries fifty operations at a time', async () => {
  const socket = await openSocket();
  const fifty = Array.from({ length: 50 }, () => socket.subscribe(live));
  for (const one of fifty) await one.next();
  const answer = await socket.subscribe(live).next();
  expect(code(answer)).toBe('BAD_USER_INPUT');
  expect(answer.errors?.[0]?.extensions?.['limit']).toBe(50);
  fifty[0]?.stop();
  await expect.poll(async () => code(await socket.subscribe(live).next())).toBeUndefined();
  await socket.close();
});

it('[P5] a message above 64 KiB closes with 1009', async () => {
  const socket = await openSocket();
  socket.send({ id: 'big', type: 'subscribe', payload: { query: `${live} #${'x'.repeat(70_000)}` } });
  expect(await socket.closed).toMatchObject({ code: 1009 });
});

it('[P5] a socket that does not introduce itself is closed with 4408', async () => {
  const socket = world.app.socket(null, { payload: null });
  expect(await socket.closed).toMatchObject({ code: 4408 });
});

it('[P5] a message that is no message closes with 4400 and says nothing of the server', async () => {
  const socket = await openSocket();
  socket.send('{"type":"nonsense"}');
  const { code: closeCode, reason } = await socket.closed;
  expect(closeCode).toBe(4400);
  expect(reason).toBe('Invalid message received');
});

it('[I4] [P5] revoking a device closes its sockets with REVOKED, and no others', async () => {
  const lost = await world.device('ana', 'ana-lost');
  const [socket, other] = [await openSocket(lost), await openSocket()];
  await ana.ask(documents.revokeDevice, { deviceId: 'ana-lost' });
  expect(await socket.closed).toEqual({ code: 4401, reason: 'REVOKED' });
  expect((await other.subscribe(live).next()).data).toBeDefined();
  await other.close();
});

it('[I4] [P5] a reinstall closes the sockets of the earlier install with STALE_INSTALL', async () => {
  const tablet = await world.device('ana', 'ana-tablet');
  const socket = await openSocket(tablet);
  const { credential } = await tablet.reinstall('second');
  expect(await socket.closed).toEqual({ code: 4401, reason: 'STALE_INSTALL' });
  await (await openSocket(tablet.as(credential))).close();
});

it('[H4] a closed socket leaves nothing behind', async () => {
  await expect.poll(() => world.app.connections.size).toBe(0);
  const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket()));
  const items = sockets.map((socket) => socket.subscribe(live).next());
  const settled = Promise.allSettled(items); // some reject before their turn here
  for (const [index, socket] of sockets.entries()) {
    if (index % 2 === 0) await items[index]; // the others are cut while they subscribe
    socket.ws.terminate();
  }
  await settled;
  await expect.poll(() => world.app.connections.size).toBe(0);
  await expect.poll(() => world.app.deps.bus.stats().sinks).toBe(0);
});

it('[P5] while the hint bus cannot be reached a socket is told to try later', async () => {
  const bus: HintBus = { ...createMemoryBus(), listen: () => Promise.reject(new Error('no answer')) };
  await using app = await startApp({ overrides: { bus } });
  const other = new World(app);
  await other.users('ana');
  const { credential } = await other.device('ana');
  expect(await app.socket(credential).closed).toEqual({ code: 1013, reason: 'Try Again Later' });
  const stream = await app.sse(credential, live);
  expect(stream.response.status).toBe(503);
  expect(code(await stream.next())).toBe('INTERNAL_SERVER_ERROR');
});
