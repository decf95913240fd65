// Live hints over real sockets: in which order, and what a slow or closed one costs.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BusHint, ConvId, UserId } from '../../src/model.js';
import { listenToAll, listenToMessages } from '../support/live-hints.js';
import { someoneWaits } from '../model/failpoint-gate.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor;
let ben1: Actor;
let ben2: Actor;
let cho: Actor;

beforeAll(async () => {
  world = await startWorld();
  [ana, ben1, ben2, cho] = await Promise.all([
    world.device('ana', 'ana-1'),
    world.device('ben', 'ben-1'),
    world.device('ben', 'ben-2'),
    world.device('cho', 'cho-1'),
  ]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const group = async (members: readonly string[] = ['ben']) => (await ana.createConv({ members })).conv.id;
const publish = (user: string, hint: BusHint) => {
  world.app.deps.bus.publish([user as UserId], hint);
};

test('[H8] a socket is never taken back: what is computed lower is read again', async () => {
  const conv = await group();
  for (let n = 0; n < 5; n++) await ana.send(conv, 'x');
  await ben1.markRead(conv, 7);
  const live = await ben2.app.subscribe(
    ben2.credential,
    `subscription { readChanged { resync head read unread conv { head read unread } } }`,
  );
  await live.next();
  const hint = {
    kind: 'read',
    conv: conv as ConvId,
    conversationType: 'GROUP',
    originDevice: null,
    change: null,
  } as const;
  publish('ben', { ...hint, read: 7, unread: 0, head: 7 });
  expect((await live.next()).data?.['readChanged']).toMatchObject({ read: 7, conv: { read: 7 } });
  publish('ben', { ...hint, read: 4, unread: 1, head: 5 });
  const now = { head: 7, read: 7, unread: 0 };
  expect((await live.next()).data?.['readChanged']).toMatchObject({ ...now, conv: now });
  await live.socket.close();
});

test('[H8] a hint that was slower than its numbers raises what counts as sent to the higher of the two', async () => {
  const conv = await group();
  for (let n = 0; n < 5; n++) await ana.send(conv, 'x');
  const live = await listenToAll(ben2, 'conv { id head read unread }');
  const base = { conv: conv as ConvId, conversationType: 'GROUP', originDevice: null, change: null } as const;
  const event = { eventKind: 'MESSAGE', contentType: 'TEXT', sender: 'ana' as UserId, target: null } as const;
  publish('ben', { ...base, ...event, kind: 'message', head: 5, seq: 5 });
  expect(await live.next()).toMatchObject({ seq: 5, conv: { head: 7, read: 0, unread: 5 } });
  publish('ben', { ...base, kind: 'read', read: 0, unread: 4, head: 6 });
  expect(await live.next()).toMatchObject({ conv: { head: 7, read: 0, unread: 5 } });
  await live.socket.close();
});

test('[H8] two subscriptions of one socket share what was sent', async () => {
  const conv = await group();
  await ana.send(conv, 'x');
  const socket = world.app.socket(ben2.credential);
  await socket.ready;
  const messages = socket.subscribe(`subscription { message { resync head conv { head } } }`);
  const reads = socket.subscribe(`subscription { readChanged { resync head read conv { head } } }`);
  await Promise.all([messages.next(), reads.next()]);
  const { event } = await ana.send(conv, 'y');
  await messages.until(({ data }) => (data?.['message'] as { head: number }).head === event.seq);
  publish('ben', {
    kind: 'read',
    conv: conv as ConvId,
    conversationType: 'GROUP',
    originDevice: null,
    change: null,
    read: 0,
    unread: 1,
    head: 3,
  });
  expect((await reads.next()).data?.['readChanged']).toMatchObject({ head: event.seq, conv: { head: event.seq } });
  await socket.close();
});

test('[H4] scenario 33: a socket that does not read costs a few slots and delays nobody', async () => {
  const conv = await group();
  const { event } = await ana.send(conv, 'x'.repeat(4_000), {});
  const slow = await ben1.app.subscribe(ben1.credential, `subscription { message { resync head event { content } } }`);
  await slow.next();
  const quick = await listenToMessages(ben2);
  slow.socket.ws.pause();
  // more than the buffers of both ends take
  const hints = 2_500;
  const hint = {
    kind: 'message',
    conv: conv as ConvId,
    conversationType: 'GROUP',
    originDevice: null,
    change: null,
  } as const;
  const rest = { seq: event.seq, eventKind: 'MESSAGE', contentType: 'TEXT', sender: null, target: null } as const;
  for (let n = 1; n <= hints; n++) {
    publish('ben', { ...hint, ...rest, head: event.seq + n });
    await quick.next();
  }
  slow.socket.ws.resume();
  await slow.until(({ data }) => (data?.['message'] as { head: number }).head === event.seq + hints);
  expect(slow.all.length).toBeLessThan(hints);
  await Promise.all([slow.socket.close(), quick.socket.close()]);
});

test('[H3] [H4] more than a mailbox holds becomes one resync', async () => {
  // no reader takes anything in the tick in which all of these are put
  const live = await listenToAll(cho);
  for (let n = 0; n < 3_000; n++) {
    const conv = `00000000-0000-0000-0000-${String(n).padStart(12, '0')}` as ConvId;
    publish('cho', {
      kind: 'conv',
      conv,
      conversationType: 'GROUP',
      contentType: 'MEMBER_SETTING_UPDATE',
      originDevice: null,
      change: null,
    });
  }
  expect(await live.until((row) => row['__typename'] === 'Resync')).toMatchObject({ reason: 'OVERFLOW' });
  expect(live.rows.length).toBeLessThan(3_000);
  await live.socket.close();
});

test('[H9] badgeChanged: a burst is told in few items, the last change always', async () => {
  const conv = await group();
  const live = await ben1.app.subscribe(ben1.credential, `subscription { badgeChanged { unread } }`);
  await live.next();
  const startedAt = performance.now();
  for (let n = 0; n < 60; n++) await ana.send(conv, 'burst');
  const { unread } = await ben1.badge();
  await live.until(({ data }) => (data?.['badgeChanged'] as { unread: number }).unread === unread);
  const seconds = (performance.now() - startedAt) / 1_000;
  // the first at once, then at most one a second
  expect(live.all.length).toBeLessThanOrEqual(seconds + 3);
  await ben1.markRead(conv, 62);
  await live.until(({ data }) => (data?.['badgeChanged'] as { unread: number }).unread === unread - 60);
  await live.socket.close();
});

test('[H4] a closed socket leaves nothing behind', async () => {
  const before = world.app.deps.bus.stats();
  const lives = await Promise.all([ben1, ben2, cho, cho].map((actor) => listenToAll(actor)));
  await Promise.all(lives.map((live) => live.socket.close()));
  await expect.poll(() => world.app.deps.bus.stats()).toEqual(before);
  expect(world.app.connections.size).toBe(0);
});

test('[H8] a subscription that ends while it waits for its turn leaves the turn to the others', async () => {
  const conv = await group();
  const { event } = await ana.send(conv, 'x');
  const socket = world.app.socket(ben2.credential);
  await socket.ready;
  const document = `subscription { message { resync head event { text } } }`;
  const [stays, ends] = [socket.subscribe(document), socket.subscribe(document)];
  await Promise.all([stays.next(), ends.next()]);
  const hint = {
    kind: 'message',
    conv: conv as ConvId,
    conversationType: 'GROUP',
    originDevice: null,
    change: null,
  } as const;
  const rest = { seq: event.seq, eventKind: 'MESSAGE', contentType: 'TEXT', sender: null, target: null } as const;
  const blocker = new pg.Client({ connectionString: world.app.databaseUrl });
  await blocker.connect();
  try {
    // the first item cannot be loaded, so the other subscription waits for the socket's turn
    await blocker.query('BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE');
    publish('ben', { ...hint, ...rest, head: event.seq });
    await someoneWaits(world.app.databaseUrl, () => false);
    ends.stop();
    await expect.poll(() => world.app.deps.bus.stats().sinks).toBe(2); // of the connection, and of the one that stays
  } finally {
    await blocker.end();
  }
  await stays.next();
  for (const head of [event.seq + 1, event.seq + 2]) {
    publish('ben', { ...hint, ...rest, head });
    expect((await stays.next()).data?.['message']).toMatchObject({ head });
  }
  await socket.close();
});
