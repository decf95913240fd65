// What one device may have open, and what may be asked over a socket where the operator allows more than subscriptions.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.js';
import type { GraphQLAnswer } from '../support/app.js';
import * as documents from '../support/documents.js';
import { listenToMessages } from '../support/live-hints.js';
import { readMetrics } from '../support/metrics.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

const live = 'subscription { hints { __typename } }';
const code = ({ errors }: GraphQLAnswer) => errors?.[0]?.extensions?.['code'];
let world: World;
let ana: Actor;
let conv: string;

beforeAll(async () => {
  world = await startWorld({ config: { maxSocketsPerDevice: 3, wsQueries: true, metricsPort: 0 } });
  ana = await world.device('ana');
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
});
afterAll(() => world[Symbol.asyncDispose]());

async function open(actor: Actor) {
  const socket = world.app.socket(actor.credential);
  await socket.ready;
  return socket;
}

it('the defaults', () => {
  expect(readConfig({})).toMatchObject({ maxSocketsPerDevice: 8, wsQueries: false });
  expect(readConfig({ MAX_SOCKETS_PER_DEVICE: '2', WS_QUERIES: 'true' })).toMatchObject({
    maxSocketsPerDevice: 2,
    wsQueries: true,
  });
});

it('[P5] of more sockets and streams than one device may have the oldest is told to come back, and the newest lives', async () => {
  const [ben, other] = [await world.device('ben'), await world.device('ben')];
  const kept = await open(other);
  const first = await open(ben);
  const stream = await world.app.sse(ben.credential, live);
  await stream.next();
  const rest = [await open(ben)];
  rest.push(await open(ben));
  expect(await first.closed).toEqual({ code: 1013, reason: 'Try Again Later' });
  rest.push(await open(ben));
  expect(await stream.ended).toBe('cut');
  for (const socket of [kept, ...rest])
    expect((await socket.subscribe(live).next()).data).toEqual({ hints: { __typename: 'Resync' } });
  const turnedAway = (await readMetrics(world.app)).get('tidemark_turned_away_total{kind="device"}');
  expect(turnedAway).toBe(2);
  for (const socket of [kept, ...rest]) await socket.close();
  await expect.poll(() => world.app.connections.size).toBe(0);
});

it('[P5] thirty that a phone left behind leave three, and those that go make room', async () => {
  const cho = await world.device('cho');
  const sockets = await Promise.all(Array.from({ length: 30 }, () => open(cho)));
  await expect.poll(() => world.app.connections.size).toBe(3);
  await expect.poll(() => sockets.filter(({ ws }) => ws.readyState === ws.OPEN).length).toBe(3);
  for (const socket of sockets) socket.ws.terminate();
  await expect.poll(() => world.app.connections.size).toBe(0);
  await (await open(cho)).close();
});

it('[P6] with WS_QUERIES queries and mutations run over a socket as they do over HTTP', async () => {
  const ben = await world.device('ben');
  const hints = await listenToMessages(ben);
  const socket = await open(ana);
  const input = { conv, clientId: fresh(), contentType: 'TEXT', content: { text: 'over the socket' } };
  const { data } = await socket.subscribe(documents.send, { input }).next();
  const { seq } = (data as { send: { event: { seq: number } } }).send.event;
  expect(await hints.next()).toMatchObject({ seq });
  expect((await socket.subscribe('{ viewer { id } }').next()).data).toEqual({ viewer: { id: 'ana' } });
  expect(code(await socket.subscribe('{ conv(id: "nope") { id } }').next())).toBe('NOT_MEMBER');
  expect(code(await socket.subscribe('{ nothing }').next())).toBe('GRAPHQL_VALIDATION_FAILED');
  await hints.socket.close();
  await socket.close();
});

it('[I5] with WS_QUERIES a credential that has been revoked is refused at once, before its socket is closed', async () => {
  const lost = await world.device('ana');
  const socket = await open(lost);
  const { data } = await socket.subscribe('{ viewer { device { id } } }').next();
  const { id } = (data as { viewer: { device: { id: string } } }).viewer.device;
  // as if the hint that closes it were lost
  await world.app.deps.store.pool.query('UPDATE devices SET revoked_at = now() WHERE id = $1', [id]);
  expect(code(await socket.subscribe('{ viewer { id } }').next())).toBe('UNAUTHENTICATED');
  await world.app.connections.check();
  expect(await socket.closed).toEqual({ code: 4401, reason: 'REVOKED' });
});
