// "All that I was shown is read", and nothing newer: what the token of an answer had seen.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { groupsOf, sendMany } from '../support/big-log.js';
import { blocksOf } from '../support/blocks.js';
import { recordingBus } from '../support/recording-bus.js';
import { countStatements } from '../support/statements.js';
import { FailpointGate } from '../model/failpoint-gate.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

const bus = recordingBus();
const gate = new FailpointGate();
let world: World;
let ana: Actor;

beforeAll(async () => {
  world = await startWorld({ overrides: { bus, failpoint: gate.failpoint } });
  ana = await world.device('ana');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const pool = () => world.app.deps.store.pool;
const codes = (items: readonly { error: { code: string } | null }[]) => items.map(({ error }) => error?.code ?? 'ok');

/** A user of one's own, so that the others' conversations are not among "all". */
async function newcomer(): Promise<{ user: string; device: Actor; join: (head?: number) => Promise<string> }> {
  const user = fresh('dan');
  await world.users(user);
  const join = async (head = 2) => {
    const { id } = (await ana.createConv({ members: [user] })).conv;
    if (head > 2) await sendMany(pool(), id, 'ana', head - 2);
    return id;
  };
  return { user, device: await world.device(user), join };
}

test('[R1] [R4] [U5] reads what the token had seen, in left conversations too; again it changes and announces nothing', async () => {
  const { user, device, join } = await newcomer();
  const [open, left, read] = [await join(6), await join(6), await join(6)];
  await ana.removeMember(left, user); // 7
  await device.markRead(read, 6);
  const { asOf } = await device.badge();
  const later = await join(5);
  await ana.send(open, 'newer'); // 7
  const first = await device.markAllRead(asOf);
  expect(first.complete).toBe(true);
  expect(codes(first.items)).toEqual(['ok', 'ok']);
  expect(new Map(first.items.map(({ conv, read: at, unread, head }) => [conv?.id, [at, unread, head]]))).toEqual(
    new Map([
      [open, [6, 1, 7]],
      [left, [7, 0, 7]],
    ]),
  );
  expect(first.badge).toMatchObject({ unread: 4, convs: 2 });
  expect(await device.markAllRead(asOf)).toMatchObject({ items: [], complete: true });
  const told = (id: string) => bus.told(user, id).filter(({ kind }) => kind === 'read').length;
  expect([open, left, read, later].map(told)).toEqual([1, 1, 1, 0]);
  expect((await device.markAllRead((await device.convs()).asOf)).badge.unread).toBe(0);
});

test('[R1] [L2] a send that was under way when the token was made stays unread, although it commits before the call', async () => {
  const { device, join } = await newcomer();
  const [held, free] = [await join(4), await join(4)];
  const stop = gate.stopAt('before commit');
  const sending = ana.send(held, 'under way'); // 5
  await stop.reached;
  await ana.send(free, 'committed'); // 5: a larger transaction number, seen by the token
  const shown = await device.convs();
  stop.letGo();
  await sending;
  await ana.send(held, 'newer'); // 6
  await device.markAllRead(shown.asOf);
  expect(await device.conv(held)).toMatchObject({ read: 4, unread: 2, head: 6 });
  expect(await device.conv(free)).toMatchObject({ read: 5, unread: 0 });
  expect((await device.audit(held)).seqs).toEqual([5, 6]);
});

test('[R1] [L2] [U3] under a storm of sends, read becomes exactly the head that the answer showed', async () => {
  const { user, device, join } = await newcomer();
  const ids = [await join(3), await join(3), await join(3)];
  const senders = [ana, world.asUser('ana'), world.asUser(user)];
  const storm = { over: false };
  const sending = senders.map(async (sender, at) => {
    for (let n = 0; !storm.over; n++) await sender.send(ids[(n + at) % 3] ?? '', String(n));
  });
  try {
    for (let round = 0; round < 15; round++) {
      const shown = await device.convs();
      const { items } = await device.markAllRead(shown.asOf);
      expect(codes(items).filter((code) => code !== 'ok')).toEqual([]);
      const { nodes } = await device.convs();
      for (const { id, head } of shown.nodes) expect(nodes.find((node) => node.id === id)?.read).toBe(head);
    }
  } finally {
    storm.over = true;
    await Promise.all(sending);
  }
});

test('[P1] in chunks of at most 200, each one statement: repeat with the same token until complete', async () => {
  const { user, device } = await newcomer();
  const ids = await groupsOf(pool(), ['ana', user], 205, 3);
  const { asOf } = await device.badge();
  for (const id of ids.slice(0, 3)) await ana.send(id, 'newer');
  const sizes: [number, boolean][] = [];
  const work = async () => {
    for (let complete = false; !complete;) {
      const page = await device.markAllRead(asOf);
      ({ complete } = page);
      sizes.push([page.items.length, complete]);
    }
  };
  expect(await countStatements('batches.advanceAll', work)).toBe(2);
  expect(sizes).toEqual([
    [200, false],
    [5, true],
  ]);
  expect(await device.badge()).toMatchObject({ unread: 3, convs: 3 });
});

test('[M1] [M2] periods that end and begin after the token: nothing newer than it is read', async () => {
  const { user, device, join } = await newcomer();
  const id = await join(5);
  const { asOf } = await device.badge();
  await ana.removeMember(id, user); // 6
  await ana.send(id, 'hidden'); // 7
  await ana.addMembers(id, [user]); // 8
  await ana.send(id, 'newer'); // 9
  expect((await device.markAllRead(asOf)).items).toMatchObject([{ read: 5, unread: 1, head: 9 }]);
  const before = await device.badge();
  const fromNow = await join(4);
  expect((await device.markAllRead(asOf)).items).toEqual([]);
  expect((await device.conv(fromNow)).read).toBe(0);
  expect((await device.markAllRead(before.asOf)).items).toMatchObject([{ read: 9, unread: 0 }]);
});

test('[L7] a floor that has passed the token: nothing above it is read', async () => {
  const { device, join } = await newcomer();
  const id = await join(6);
  const { asOf } = await device.badge();
  await sendMany(pool(), id, 'ana', 6); // 12
  await world.app.deps.store.conversations.raiseFloor(id as never, 10);
  await world.app.deps.store.conversations.prune(id as never, 100);
  expect(await device.markAllRead(asOf)).toMatchObject({ items: [], complete: true });
  expect((await device.conv(id)).unread).toBe(3);
});

test('[P6] a token of a moment that has not been is refused', async () => {
  const { device } = await newcomer();
  const [life = '', moment = ''] = (await device.badge()).asOf.split('/');
  const [, xmax = ''] = moment.split(':');
  await expect(device.markAllRead(`${life}/1:${String(BigInt(xmax) + 1_000n)}:`)).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
  });
});

test('[U4] what it costs does not grow with what is newer than the token', async () => {
  const one = await newcomer();
  const id = await one.join(40);
  const snapshot = async () => (await one.device.badge()).asOf.split('/') as [string, string];
  const [life, old] = await snapshot();
  const call = (moment: string) =>
    ['SELECT * FROM mark_all_read($1, NULL, 0, $2, $3::pg_snapshot, 200)', [one.user, life, moment]] as const;
  const [few = 0] = await blocksOf(world.app.databaseUrl, [call(old)]);
  await sendMany(pool(), id, 'ana', 30_000);
  const [many = 0] = await blocksOf(world.app.databaseUrl, [call(old)]);
  expect(many).toBeLessThanOrEqual(few + 80); // by halving: 15 looks by key, not 30,000
});

// last, for all that went before has tokens
test('[L8] after a restore old tokens are void, and new ones have seen what was restored, whatever server wrote it', async () => {
  const { device, join } = await newcomer();
  const id = await join(6);
  const { asOf } = await device.badge();
  // as a dump brings it: numbers of transactions that are still to come here
  await pool().query(`UPDATE events SET xid = '900000000000' WHERE conv_id = $1`, [id]);
  await world.app.deps.store.transaction((tx) => tx.generation.begin());
  await expect(device.markAllRead(asOf)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  const { asOf: now } = await device.badge();
  await ana.send(id, 'newer'); // 7
  for (let complete = false; !complete;) ({ complete } = await device.markAllRead(now));
  expect(await device.conv(id)).toMatchObject({ read: 6, unread: 1 });
  for (let complete = false; !complete;) ({ complete } = await device.markAllRead((await device.badge()).asOf));
  expect(await device.conv(id)).toMatchObject({ read: 7, unread: 0 });
});
