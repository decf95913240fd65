// Scenario 34b: markRead races send through a network that lets HTTP and WebSocket overtake each other. At rest a normalized
// cache shows what the database says, given the guard of test/support/newest.ts; the socket alone never goes back.
import { gql } from '@apollo/client/core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { clientOf } from '../support/app.js';
import { startProxy, type Proxy } from '../support/proxy.js';
import { newSeed, seeded } from '../support/seeded.js';
import { Actor, startWorld, type World } from '../support/world.js';
import * as documents from './documents.js';
import { connectGuarded, type ConvNumbers } from './guarded.js';

const groups = 10;
const rounds = 100;
/** Of an answer or a request over HTTP, and of a hint: each its own way. */
const maxDelayMs = { http: 100, socket: 20 };
const seed = Number(process.env['TIDEMARK_SEED'] ?? newSeed());
const random = seeded(seed); // TIDEMARK_SEED repeats it, as far as a network can be repeated

let world: World;
let http: Proxy;
let sockets: Proxy;
let ana: Actor;
const convs: string[] = [];
beforeAll(async () => {
  vi.stubGlobal('WebSocket', WebSocket);
  world = await startWorld();
  http = await startProxy(() => world.app.url);
  sockets = await startProxy(() => world.app.url);
  const direct = await world.device('ana');
  for (let n = 0; n < groups; n++) convs.push((await direct.createConv({ members: ['ben'] })).conv.id);
  ana = new Actor({ ...direct.app, ...clientOf(http.through(world.app.url)) }, direct.credential);
  http.delay = () => random.below(maxDelayMs.http);
  sockets.delay = () => random.below(maxDelayMs.socket);
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await sockets[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  vi.unstubAllGlobals();
});

/** What a plain socket of the same network was told, in order. */
async function overheard(credential: string) {
  const socket = clientOf(sockets.through(world.app.url)).socket(credential);
  await socket.ready;
  const live = socket.subscribe(
    `subscription { hints { ... on MessageHint { conv { id head read unread } } ... on ReadHint { conv { id head read unread } } } }`,
  );
  await live.next();
  return {
    close: () => socket.close(),
    rows: () => live.all.flatMap(({ data }) => (data?.['hints'] as { conv?: ConvNumbers }).conv ?? []),
  };
}

function stepsBack(rows: readonly ConvNumbers[]): string[] {
  const last = new Map<string, ConvNumbers>();
  return rows.flatMap((row) => {
    const before = last.get(row.id) ?? row;
    last.set(row.id, row);
    return row.head < before.head || row.read < before.read
      ? [`${JSON.stringify(before)} → ${JSON.stringify(row)}`]
      : [];
  });
}

test('[R4] [H8] scenario 34b: 1,000 markReads race sends; at rest the cache equals conv(id), a socket never goes back', async () => {
  const [phone, laptop] = [await world.device('ben'), await world.device('ben')];
  const screen = connectGuarded({
    http: http.through(world.app.url),
    socket: sockets.through(world.app.url),
    credential: phone.credential,
  });
  const plain = await overheard(laptop.credential);
  await vi.waitUntil(() => screen.told.resyncs > 0, 20_000);
  console.log(`seed ${String(seed)}`);
  const heads = new Map(convs.map((conv) => [conv, 2]));
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      convs.map(async (conv) => {
        const head = heads.get(conv) ?? 2;
        const marked = screen.client.mutate({ mutation: gql(documents.markRead), variables: { conv, seq: head } });
        const { event } = await ana.send(conv, `round ${String(round)}`);
        heads.set(conv, event.seq);
        await marked;
      }),
    );
    const isTrue = await Promise.all(convs.map((conv) => phone.conv(conv)));
    const expected = isTrue.map(({ id, head, read, unread }) => ({ id, head, read, unread }));
    await vi.waitFor(() => expect(convs.map((conv) => screen.shown(conv))).toMatchObject(expected), {
      timeout: 15_000,
    });
  }
  await vi.waitUntil(() => plain.rows().length > 0);
  expect(stepsBack(plain.rows())).toEqual([]);
  // The network did let them overtake each other: without the guard the cache stays behind within a few rounds.
  expect(screen.told.older + screen.told.unlike).toBeGreaterThan(0);
  await plain.close();
  await screen.close();
}, 300_000);
