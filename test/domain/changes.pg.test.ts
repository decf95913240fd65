// The changes feed: what it says, in which order, and that no cursor ever misses anything (C1, C2, C3).
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FeedClient, freshState } from '../support/feed.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';
import { FailpointGate, someoneWaits } from '../model/failpoint-gate.js';

const gate = new FailpointGate();
let world: World;
let ana: Actor;
/** a user of each test's own, and two devices */
let user: string;
let phone: Actor;
let laptop: Actor;

beforeAll(async () => {
  world = await startWorld({ overrides: { failpoint: gate.failpoint } });
  ana = await world.device('ana');
});
beforeEach(async () => {
  user = fresh('user');
  await world.users(user);
  [phone, laptop] = await Promise.all([world.device(user), world.device(user)]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const group = async (more: object = {}) => (await ana.createConv({ members: [user], ...more })).conv.id;
const groups = (count: number) => Promise.all(Array.from({ length: count }, () => group()));
const convsOf = (page: { items: readonly { conv: { id: string } }[] }) => page.items.map(({ conv }) => conv.id);
const numberIn = (cursor: string) => Buffer.from(cursor, 'base64url').toString().split(' ');
const cursorOf = (generation: string, number: string) => Buffer.from(`${generation} ${number}`).toString('base64url');

describe('what comes', () => {
  test('[C1] memberships, settings and reads of one’s own; what was left as a tombstone; no message', async () => {
    const feed = new FeedClient();
    await feed.catchUp(phone);
    expect(feed.state).toEqual([]);
    const id = await group({ joinPolicy: 'OPEN' });
    const steps: readonly [() => Promise<unknown>, object | null][] = [
      [() => Promise.resolve(), { joined: true, read: 0, muted: false }],
      [() => ana.send(id, 'hi'), null],
      [() => laptop.markRead(id, 3), { read: 3, unread: 0, head: 3 }],
      [() => laptop.markRead(id, 2), null],
      [() => laptop.ack(id, 3), null],
      [() => laptop.setMuted(id, true), { muted: true, read: 3 }],
      [() => laptop.setMuted(id, true), null],
      [() => ana.removeMember(id, user), { joined: false, myRole: null, head: 4 }],
      [() => ana.send(id, 'to the others'), null],
      [() => laptop.markRead(id, 4), { joined: false, read: 4 }],
      [() => laptop.join(id), { joined: true, head: 6, read: 4, muted: true }],
    ];
    for (const [act, expected] of steps) {
      await act();
      const page = await phone.changes(feed.cursor);
      expect(page).toMatchObject({ reset: false, hasMore: false });
      expect(page.items.map(({ __typename }) => __typename)).toEqual(expected === null ? [] : ['ConvChange']);
      if (expected) expect(page.items[0]?.conv).toMatchObject({ id, ...expected });
      feed.apply(page);
    }
    expect(feed.state).toEqual(await freshState(phone));
  });

  test('[C1] each row once, at the place of its last change; `delivered` is of the asking device', async () => {
    const [one = '', two = '', three = ''] = await groups(3);
    await phone.ack(two, 2);
    for (const [id, seq] of [[three, 1], [one, 1], [two, 1], [one, 2]] as const) await phone.markRead(id, seq); // prettier-ignore
    const { items } = await phone.changes();
    expect(items.map(({ conv }) => conv.id)).toEqual([three, two, one]);
    expect(items[1]?.conv.delivered).toBe(2);
    expect((await laptop.changes()).items[1]?.conv.delivered).toBe(0);
    expect((await world.asUser(user).changes()).items[1]?.conv.delivered).toBe(0);
  });

  test('[C1] [P1] pages of any size bring the same, at most 200 rows each', async () => {
    const all = await Promise.all(Array.from({ length: 9 }, async () => group()));
    await phone.markReadMany(all.map((conv) => ({ conv, seq: 1 })));
    const whole = convsOf(await phone.changes());
    expect(whole).toHaveLength(9);
    for (const first of [1, 2, 3, 4, 9, 200]) {
      const found: string[] = [];
      for (let [cursor, hasMore] = [null as string | null, true]; hasMore;) {
        const page = await phone.changes(cursor, first);
        expect(page.items.length).toBeLessThanOrEqual(first);
        found.push(...convsOf(page));
        [cursor, hasMore] = [page.cursor, page.hasMore];
      }
      expect(found).toEqual(whole);
    }
  });
});

describe('a cursor', () => {
  test('[C3] of another generation, or from the future, is answered with reset and everything from the start', async () => {
    await groups(3);
    const { cursor } = await phone.changes();
    const [generation = '', number = ''] = numberIn(cursor);
    const cursors = [
      cursorOf('00000000-0000-4000-8000-000000000000', number),
      cursorOf('a-format-to-come', number),
      cursorOf(generation, String(Number(number) + 1)),
      cursorOf(generation, '9'.repeat(20)),
    ];
    for (const after of cursors) {
      const page = await phone.changes(after, 2);
      expect(page).toMatchObject({ reset: true, hasMore: true });
      expect(page.items).toHaveLength(2);
      const rest = await phone.changes(page.cursor, 2);
      expect(rest).toMatchObject({ reset: false, hasMore: false, cursor });
      expect(rest.items).toHaveLength(1);
    }
    expect(await phone.changes(cursor)).toMatchObject({ reset: false, items: [], cursor });
  });

  test('[C3] a client that was reset holds the state of now and nothing else', async () => {
    const [one = ''] = await groups(2);
    const feed = new FeedClient(null);
    await feed.catchUp(phone, 1);
    feed.cursor = cursorOf('another-life', '1');
    await phone.markRead(one, 2);
    await feed.catchUp(phone, 1);
    expect(feed.state).toEqual(await freshState(phone));
  });

  test('[C3] a page applied twice, or once more after later ones, leads to the same state', async () => {
    const all = await groups(5);
    const pages = [await phone.changes(null, 3)];
    await phone.markReadMany(all.map((conv) => ({ conv, seq: 2 })));
    await phone.leave(all[0] ?? '');
    for (let hasMore = true; hasMore;) {
      const page = await phone.changes(pages.at(-1)?.cursor ?? null, 2);
      pages.push(page);
      ({ hasMore } = page);
    }
    const feed = new FeedClient();
    for (const page of pages) {
      feed.apply(page);
      feed.apply(page);
    }
    expect(feed.state).toEqual(await freshState(phone));
    feed.apply(pages[1] ?? { items: [], cursor: '', hasMore: false, reset: false });
    await feed.catchUp(phone);
    expect(feed.state).toEqual(await freshState(phone));
  });

  test('[C3] [L8] after a restore every older cursor is answered with reset', async () => {
    await using other = await startWorld();
    const ben = await other.device('ben');
    await other.asUser('ana').createConv({ members: ['ben'] });
    const { cursor } = await ben.changes();
    await other.app.deps.store.transaction((tx) => tx.generation.begin());
    const page = await ben.changes(cursor);
    expect(page).toMatchObject({ reset: true, items: [{ conv: { joined: true } }] });
    expect(await ben.changes(page.cursor)).toMatchObject({ reset: false, items: [] });
  });
});

describe('while it changes', () => {
  /** Polls without pause; keeps a copy of itself from every moment. */
  function poll(): { readonly moments: FeedClient[]; stop(): Promise<void> } {
    const moments = [new FeedClient()];
    const run = { over: false };
    const done = (async () => {
      const feed = new FeedClient();
      while (!run.over) {
        feed.apply(await laptop.changes(feed.cursor, 2));
        if (feed.cursor !== moments.at(-1)?.cursor) moments.push(feed.copy());
      }
    })();
    return {
      moments,
      stop: () => {
        run.over = true;
        return done;
      },
    };
  }

  async function expectSound(moments: readonly FeedClient[]): Promise<void> {
    const expected = await freshState(phone);
    expect(moments.length).toBeGreaterThan(1);
    for (const moment of moments) {
      const from = moment.cursor;
      await moment.catchUp(laptop, 3);
      expect(moment.state, `from ${String(from)}`).toEqual(expected);
    }
  }

  type Pair = readonly [string, (one: string) => Promise<unknown>, (two: string) => Promise<unknown>];
  const pairs: readonly Pair[] = [
    ['a read, then a read', (one) => phone.markRead(one, 1), (two) => laptop.markRead(two, 1)],
    ['a read, then a mute', (one) => phone.markRead(one, 1), (two) => phone.setMuted(two, true)],
    ['a mute, then a read', (one) => phone.setMuted(one, true), (two) => phone.markRead(two, 2)],
    ['a kick, then a batch', (one) => ana.removeMember(one, user), (two) => phone.markReadMany([{ conv: two, seq: 1 }])],
    ['leaving, then an invitation', (one) => phone.leave(one), () => group()],
    ['a read with a send, then a kick', (one) => phone.send(one, 'x', { markReadUpTo: 2 }), (two) => ana.removeMember(two, user)],
    ['a batch, then all', (one) => phone.markReadMany([{ conv: one, seq: 2 }]), async () => phone.markAllRead((await phone.badge()).asOf)],
  ]; // prettier-ignore

  test.each(pairs)('[C2] %s: the number drawn first is never passed over', async (_, first, second) => {
    const [one = '', two = ''] = await groups(2);
    const polling = poll();
    const stop = gate.stopAt('before commit');
    const early = first(one);
    await stop.reached; // it has drawn its number, and has not committed
    let over = false;
    const late = second(two).finally(() => (over = true));
    await someoneWaits(world.app.databaseUrl, () => over);
    for (let looks = 0; looks < 3; looks++) await laptop.changes();
    stop.letGo();
    await Promise.all([early, late]);
    await polling.stop();
    await expectSound(polling.moments);
  });

  test('[C2] in a storm of changes from every side a reader that polls misses nothing, from any cursor', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => group({ joinPolicy: 'OPEN' })));
    const polling = poll();
    for (let round = 0; round < 12; round++) {
      const at = (n: number) => all[(round + n) % all.length] ?? '';
      const acts = [
        phone.markRead(at(0), 1 + (round % 2)),
        laptop.setMuted(at(1), round % 2 === 0),
        ana.removeMember(at(2), user),
        ana.addMembers(at(3), [user]),
        phone.markReadMany(all.map((conv) => ({ conv, seq: 1 + (round % 3) }))),
        round % 3 === 0 ? laptop.leave(at(4)) : laptop.join(at(4)),
        ana.send(at(5), 'x').then(({ event }) => phone.send(at(5), 'y', { markReadUpTo: event.seq })),
      ];
      // not a member, above head: as good as answers here
      await Promise.allSettled(acts);
    }
    await polling.stop();
    await expectSound(polling.moments);
  });

  test('[U3] the numbers of an item are of one moment', async () => {
    const [one = ''] = await groups(1);
    const run = { over: false };
    const writes = (async () => {
      for (let n = 3; n < 40; n++) {
        await ana.send(one, 'x');
        if (n % 5 === 0) await phone.markRead(one, n);
      }
    })().finally(() => (run.over = true));
    while (!run.over) {
      const [item] = (await laptop.changes()).items;
      // everything after the two events that made the group counts
      expect(item?.conv.unread).toBe((item?.conv.head ?? 0) - Math.max(2, item?.conv.read ?? 0));
    }
    await writes;
  });
});
