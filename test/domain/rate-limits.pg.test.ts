// How often a device may do what (P3): counted per device in this process, refused with the time to wait.
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig, type Rates } from '../../src/config.js';
import { outcomeOf, refusalOf, tally } from '../support/outcome.js';
import { startWorld, type Actor, type Refused, type World } from '../support/world.js';

/** So slow that nothing comes back while a test runs. */
const slow = (burst: number) => ({ rate: 1, perMs: 3_600_000, burst });
const rates: Rates = {
  send: { rate: 5, perMs: 1_000, burst: 5 },
  read: slow(10),
  ack: slow(10),
  signal: slow(2),
  connect: slow(3),
};
let world: World;
let conv: string;

beforeAll(async () => {
  world = await startWorld({ config: { rates } });
  ({ id: conv } = (await world.asUser('ana').createConv({ members: ['ben', 'cho'] })).conv);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const limited = { code: 'RATE_LIMITED', extensions: { retryable: true } };
const items = (n: number) => Array.from({ length: n }, () => ({ conv, seq: 1 }));
const live = 'subscription { hints { __typename } }';
const connect = async (device: Actor) => {
  const socket = world.app.socket(device.credential);
  await Promise.race([socket.ready, socket.closed]);
  return socket;
};

test('[P3] the defaults', () => {
  const bySecond = { rate: 500, perMs: 1_000, burst: 1_000 };
  expect(readConfig({}).rates).toEqual({
    signal: { rate: 10, perMs: 1_000, burst: 30 },
    send: { rate: 30, perMs: 1_000, burst: 60 },
    read: bySecond,
    ack: bySecond,
    connect: { rate: 5, perMs: 60_000, burst: 20 },
  });
  expect(readConfig({ SEND_RATE: '7', CONNECT_BURST: '9' }).rates).toMatchObject({
    send: { rate: 7, burst: 60 },
    connect: { rate: 5, burst: 9 },
  });
  expect(() => readConfig({ ACK_RATE: '0' })).toThrow('ACK_RATE');
});

test('[P3] [L1] sends at once: as many as the burst, the others refused with the time to wait, and it passes', async () => {
  const [ana, other] = [await world.device('ana'), await world.device('ana')];
  const { head } = await ana.conv(conv);
  const outcomes = await Promise.all(Array.from({ length: 12 }, (_, n) => outcomeOf(ana.send(conv, String(n)))));
  const { ok = 0, RATE_LIMITED = 0 } = tally(outcomes);
  expect([ok >= 5, RATE_LIMITED >= 1, ok + RATE_LIMITED]).toEqual([true, true, 12]);
  expect((await ana.conv(conv)).head).toBe(head + ok);
  await other.send(conv, 'another device has a count of its own');
  await expect.poll(() => outcomeOf(ana.send(conv, 'later')), { timeout: 10_000 }).toBe('ok');
});

test('[P3] who tries again after retryAfterMs passes, every time', async () => {
  const ana = await world.device('ana');
  for (let refusals = 0; refusals < 5;) {
    const refused = await ana.send(conv, 'again').then(
      () => null,
      (error: unknown) => error as Refused,
    );
    if (refused === null) continue;
    refusals++;
    expect(refused).toMatchObject(limited);
    await pause(refused.extensions['retryAfterMs'] as number);
    await ana.send(conv, 'after the time told');
  }
});

test('[P3] a batch counts its items, is refused whole, and what is refused does not count', async () => {
  const ben = await world.device('ben');
  await ben.markReadMany(items(6));
  const refused = await refusalOf(ben.markReadMany([...items(4), { conv, seq: 2 }]));
  expect(refused).toMatchObject(limited);
  const { retryAfterMs } = refused.extensions as { retryAfterMs: number };
  expect(Number.isInteger(retryAfterMs) && retryAfterMs > 0 && retryAfterMs <= 10 * 3_600_000).toBe(true);
  expect((await ben.conv(conv)).read).toBe(1);
  await ben.markReadMany(items(3));
  await ben.markRead(conv, 1);
  await expect(ben.markRead(conv, 2)).rejects.toMatchObject(limited);
  await expect(ben.markAllRead((await ben.badge()).asOf)).rejects.toMatchObject(limited);
  // acks are counted apart
  await ben.ackMany(items(9));
  await ben.ack(conv, 1);
  await expect(ben.ack(conv, 2)).rejects.toMatchObject(limited);
  await expect(ben.ackMany(items(1))).rejects.toMatchObject(limited);
  // reading what there is has no such limit, and neither has the application's own server
  for (let n = 0; n < 20; n++) await world.asUser('ben').markRead(conv, 1);
  expect((await ben.conv(conv)).delivered).toBe(1);
});

test('[P3] a batch larger than the burst passes when nothing else was asked', async () => {
  const ben = await world.device('ben');
  expect((await ben.ackMany(items(50))).items).toHaveLength(50);
  await expect(ben.ack(conv, 1)).rejects.toMatchObject(limited);
});

test('[P3] [P5] who connects too often is told to try later: a device, and all devices of one user together', async () => {
  const [one, two] = [await world.device('cho'), await world.device('cho')];
  const open = [await connect(one), await connect(one), await connect(two)];
  for (const device of [one, two])
    expect(await world.app.socket(device.credential).closed).toEqual({ code: 1013, reason: 'Try Again Later' });
  const stream = await world.app.sse(two.credential, live);
  expect(stream.response.status).toBe(429);
  const [error] = (await stream.next()).errors ?? [];
  expect(error?.extensions).toMatchObject({ code: 'RATE_LIMITED', retryable: true });
  expect(error?.extensions?.['retryAfterMs']).toBeGreaterThan(0);
  // those that are open stay, and other users are not concerned
  expect(await open[0]?.subscribe(live).next()).toMatchObject({ data: { hints: { __typename: 'Resync' } } });
  open.push(await connect(await world.device('ana')));
  await open[3]?.ready;
  for (const socket of open) await socket.close();
});

test('[P3] [X1] signals have a limit of their own', async () => {
  const ana = await world.device('ana');
  const document = 'mutation ($conv: ID!) { signal(conv: $conv, contentType: TYPING) { users } }';
  const outcomes = [];
  for (let n = 0; n < 3; n++) outcomes.push(await outcomeOf(ana.ask(document, { conv })));
  expect(outcomes).toEqual(['ok', 'ok', 'RATE_LIMITED']);
  await ana.send(conv, 'not counted together');
});
