// The redelivery scan: whatever hint is lost on the way to a node, the scan of that node tells it (H5).
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { groupsOf } from '../support/big-log.js';
import { byId, freshState, ownPart, type OwnPart } from '../support/feed.js';
import { listenToAll, listenToMessages, listenToReads } from '../support/live-hints.js';
import { swallowingBus, type SwallowingBus } from '../support/swallowing-bus.js';
import { statementsOf } from '../support/statements.js';
import { fresh, startWorld, type Actor, type ConvRow, type World } from '../support/world.js';

let bus: SwallowingBus;
let world: World;
let ana: Actor;
/** a user of each test's own; the phone has always acked, the laptop never */
let user: string;
let phone: Actor;
let laptop: Actor;

beforeAll(async () => {
  bus = swallowingBus();
  world = await startWorld({ overrides: { bus } });
  ana = await world.device('ana');
});
beforeEach(async () => {
  await expect.poll(() => world.app.connections.size).toBe(0); // those of the test before
  user = fresh('user');
  await world.users(user);
  [phone, laptop] = await Promise.all([world.device(user), world.device(user)]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const scan = () => world.app.redelivery.scan();
/** A change is missed by the second scan after it. */
const scanTwice = async () => {
  await scan();
  await scan();
};
const redelivered = async () =>
  Number(/^tidemark_hints_redelivered_total (\d+)$/mu.exec(await world.app.deps.metrics.text())?.[1]);
const group = async (more: object = {}) => {
  const { conv } = await ana.createConv({ members: [user], ...more });
  await phone.ack(conv.id, conv.head);
  return conv.id;
};
/** Nothing of what happens inside reaches the user. */
async function lose<T>(act: () => Promise<T>, fits: (hint: { kind: string }) => boolean = () => true): Promise<T> {
  const before = bus.lost;
  bus.swallow((to, hint) => to === user && fits(hint));
  try {
    return await act();
  } finally {
    bus.swallow(null);
    expect(bus.lost).toBeGreaterThan(before);
  }
}
const close = (...lives: readonly { socket: { close(): unknown } }[]) =>
  Promise.all(lives.map(({ socket }) => socket.close()));

describe('messages', () => {
  test('[H5] a lost message is told to the devices that lack it, once, and to no other', async () => {
    const id = await group();
    const [first, second] = [await listenToMessages(phone), await listenToMessages(laptop)];
    const { event } = await lose(() => ana.send(id, 'unheard'));
    await scan();
    expect(await first.next()).toMatchObject({ conv: { id }, seq: event.seq, contentType: 'TEXT' });
    await scan();
    const later = await lose(() => ana.send(id, 'unheard too'));
    await scan();
    expect(await first.next()).toMatchObject({ seq: later.event.seq });
    const heard = await ana.send(id, 'heard');
    // the laptop has never acked: it is not waited for
    for (const live of [first, second]) expect(await live.next()).toMatchObject({ seq: heard.event.seq });
    await close(first, second);
  });

  test('[H5] a device that holds everything is told nothing, an old install’s ack is nobody’s', async () => {
    const id = await group();
    await laptop.ack(id, 2);
    await laptop.reinstall(fresh('install')).then(({ credential }) => (laptop.credential = credential));
    const lives = [await listenToMessages(phone), await listenToMessages(laptop)];
    const { event } = await lose(() => ana.send(id, 'fetched without a hint'));
    await phone.ack(id, event.seq);
    const before = await redelivered();
    await scanTwice();
    expect(await redelivered()).toBe(before);
    await close(...lives);
  });

  test('[H5] what happened within the grace time may be on its way', async () => {
    await using patient = await startWorld({
      config: { redelivery: { everyMs: 3_600_000, graceMs: 3_600_000 } },
    });
    const [sender, reader] = [await patient.device('ana'), await patient.device('ben')];
    const { conv } = await sender.createConv({ members: ['ben'] });
    await reader.ack(conv.id, 1);
    const live = await listenToMessages(reader);
    await sender.send(conv.id, 'x');
    await live.next();
    await patient.app.redelivery.scan();
    expect(await patient.app.deps.metrics.text()).toContain('tidemark_hints_redelivered_total 0');
    await close(live);
  });

  test('[H5] a lost recall is told with its target, over an event stream too', async () => {
    const id = await group();
    await ana.send(id, 'wrong');
    await phone.ack(id, 3);
    const stream = await world.app.sse(phone.credential, 'subscription { message { seq kind target { seq } } }');
    await stream.next();
    await lose(() => ana.recall(id, 3));
    await scan();
    expect((await stream.next()).data?.['message']).toEqual({ seq: 4, kind: 'RECALL', target: { seq: 3 } });
    stream.close();
  });
});

describe('changes of the user’s own state', () => {
  test('[H5] a lost read is told to every device, also when the next one was heard', async () => {
    const [one, two] = [await group(), await group()];
    const lives = [await listenToReads(phone), await listenToReads(laptop)];
    await lose(() => phone.markRead(one, 2));
    await phone.markRead(two, 2);
    for (const live of lives) expect(await live.next()).toMatchObject({ conv: { id: two }, read: 2 });
    await scanTwice();
    for (const live of lives) expect(await live.next()).toMatchObject({ conv: { id: one }, read: 2, unread: 0 });
    const before = await redelivered();
    await scanTwice();
    expect(await redelivered()).toBe(before);
    await close(...lives);
  });

  test('[H5] a lost mute is told although a later read of the same conversation was heard', async () => {
    const id = await group();
    const live = await listenToAll(laptop);
    await lose(() => phone.setMuted(id, true));
    await phone.markRead(id, 2);
    await live.until((row) => row['__typename'] === 'ReadHint');
    await scanTwice();
    expect(await live.until((row) => row['__typename'] === 'ConvHint')).toMatchObject({ conv: { id } });
    await close(live);
  });

  test.each<[string, (id: string) => Promise<unknown>, object]>([
    ['kick', (id) => ana.removeMember(id, user), { contentType: 'MEMBER_KICK' }],
    ['leaving', (id) => phone.leave(id), { contentType: 'MEMBER_QUIT' }],
    [
      'invitation',
      (id) => ana.removeMember(id, user).then(() => ana.addMembers(id, [user])),
      { contentType: 'MEMBER_INVITE' },
    ],
    ['new group', () => ana.createConv({ members: [user] }), { contentType: 'MEMBER_INVITE' }],
    ['new direct conversation', () => ana.createConv({ type: 'DIRECT', members: [user] }), { __typename: 'ConvHint' }],
  ])('[H5] [H9] a lost %s is told to a device that has never acked', async (_, change, expected) => {
    const id = await group();
    const live = await listenToAll(laptop);
    await lose(() => change(id));
    await scanTwice();
    const kind = Object.entries(expected)[0] ?? ['', ''];
    expect(await live.until((row) => row[kind[0]] === kind[1])).toMatchObject(expected);
    await close(live);
  });

  test('[H5] more lost changes than are told one by one become a resync', async () => {
    const all = await groupsOf(world.app.deps.store.pool, ['ana', user], 105, 2);
    const live = await listenToReads(laptop);
    await lose(async () => {
      for (const seq of [1, 2]) await phone.markReadMany(all.map((conv) => ({ conv, seq })));
    });
    await scanTwice();
    expect(await live.next()).toMatchObject({ resync: 'BUS' });
    await close(live);
  });

  test('[H5] whatever is lost of a storm, the hints that come lead to the state of now', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => group({ joinPolicy: 'OPEN' })));
    const fields = `conv { id type title epoch head minSeq delivered read unread joined muted myRole }`;
    const live = await laptop.app.subscribe(
      laptop.credential,
      `subscription { hints { ... on Resync { reason } ... on MessageHint { ${fields} } ... on ReadHint { ${fields} } ... on ConvHint { ${fields} } } }`,
    );
    await live.next();
    const held = new Map<string, OwnPart>((await freshState(laptop)).map((part) => [part.id, part]));
    const seed = Math.floor(Math.random() * 2 ** 31);
    let state = seed;
    const chance = () => (state = (state * 48_271 + 11) % 2_147_483_647) % 3;
    bus.swallow((to) => to === user && chance() > 0);
    for (let round = 0; round < 10; round++) {
      const at = (n: number) => all[(round + n) % all.length] ?? '';
      await Promise.allSettled([
        phone.markRead(at(0), 1 + (round % 2)),
        phone.setMuted(at(1), round % 2 === 0),
        ana.removeMember(at(2), user),
        ana.addMembers(at(3), [user]),
        phone.markReadMany(all.map((conv) => ({ conv, seq: 1 + (round % 4) }))),
        round % 3 === 0 ? phone.leave(at(4)) : phone.join(at(4)),
      ]);
      if (round === 5) await scan();
    }
    bus.swallow(null);
    await scanTwice();
    const last = await ana.createConv({ members: [user] }); // behind all that was redelivered
    held.set(last.conv.id, ownPart({ ...last.conv, joined: true, muted: false, read: 0 }));
    for (let isOver = false; !isOver;) {
      const { conv } = (await live.next()).data?.['hints'] as { conv?: ConvRow };
      if (conv) held.set(conv.id, ownPart(conv));
      isOver = conv?.id === last.conv.id;
    }
    expect(byId(held.values()), `seed ${String(seed)}`).toEqual(await freshState(laptop));
    await live.socket.close();
  });
});

describe('badges', () => {
  const listenToBadge = async () => {
    const live = await laptop.app.subscribe(laptop.credential, `subscription { badgeChanged { unread mutedUnread } }`);
    const badge = async () => (await live.next()).data?.['badgeChanged'];
    return { badge, socket: live.socket };
  };

  test('[H5] are right again after a lost message, read and mute, for a device that has never acked', async () => {
    const id = await group();
    const live = await listenToBadge();
    expect(await live.badge()).toEqual({ unread: 0, mutedUnread: 0 });
    const { event } = await lose(() => ana.send(id, 'unheard'));
    await scan();
    expect(await live.badge()).toEqual({ unread: 1, mutedUnread: 0 });
    await lose(() => phone.setMuted(id, true));
    await scanTwice();
    expect(await live.badge()).toEqual({ unread: 0, mutedUnread: 1 });
    await lose(() => phone.markRead(id, event.seq));
    await scanTwice();
    expect(await live.badge()).toEqual({ unread: 0, mutedUnread: 0 });
    await close(live);
  });
});

describe('the cost', () => {
  test('[H5] nothing is told again when nothing was lost', async () => {
    const id = await group({ joinPolicy: 'OPEN' });
    const lives = [await listenToAll(phone), await listenToAll(laptop)];
    const before = await redelivered();
    await scan();
    await Promise.all([phone.setMuted(id, true), ana.send(id, 'x'), phone.markRead(id, 1), laptop.markRead(id, 2)]);
    await phone.leave(id);
    await phone.join(id);
    await phone.createConv({ type: 'DIRECT', members: ['ana'] });
    const { head } = await phone.conv(id);
    await phone.ack(id, head);
    for (const live of lives) await live.until((row) => row['contentType'] === 'DIRECT_CREATE');
    await scanTwice();
    await scan();
    expect(await redelivered()).toBe(before);
    await close(...lives);
  });

  test('[H5] is the same few statements for one device and for many', async () => {
    const id = await group();
    const live = await listenToAll(phone);
    const few = await statementsOf(scanTwice);
    const actors = await Promise.all(Array.from({ length: 8 }, () => world.device(user)));
    const lives = await Promise.all(actors.map((actor) => listenToAll(actor)));
    for (const actor of actors) await actor.ack(id, 1);
    await lose(() => phone.markRead(id, 2));
    const many = await statementsOf(scanTwice);
    // and two that ask for what was missed, and, beside the scan, one that asks what to listen to (H7)
    const beside = many.filter((text) => text.includes('/* channels.of */'));
    expect(beside.length).toBeLessThanOrEqual(1);
    expect(many.length - beside.length).toBe(few.length + 2);
    expect(few.length).toBeLessThanOrEqual(4);
    await close(live, ...lives);
  });

  test('[H5] is nothing without a device', async () => {
    await using quiet = await startWorld();
    expect(await statementsOf(() => quiet.app.redelivery.scan())).toEqual([]);
  });
});
