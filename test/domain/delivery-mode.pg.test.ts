// PUSH and PULL (H7) on one node: when the mode changes, who is told which way, and what a subscriber gets meanwhile.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listenToAll, listenToMessages } from '../support/live-hints.js';
import { recordingBus } from '../support/recording-bus.js';
import { countStatements } from '../support/statements.js';
import { startWorld, type Actor, type World } from '../support/world.js';
import { someoneWaits } from '../model/failpoint-gate.js';

const bus = recordingBus();
const crowd = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6'];
let fails: (name: string) => boolean = () => false;
let world: World;
let ana: Actor;
let ben: Actor;
let cho: Actor;

beforeAll(async () => {
  world = await startWorld({
    config: { delivery: { pullAt: 5, bothMs: 3_600_000, everyMs: 1 } },
    overrides: {
      bus,
      failpoint: (name) => (fails(name) ? Promise.reject(new Error(`it dies: ${name}`)) : Promise.resolve()),
    },
  });
  await world.users(...crowd);
  [ana, ben, cho] = [await world.device('ana'), await world.device('ben'), await world.device('cho')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(() => {
  fails = () => false;
});

/** ana, ben and as many of the crowd as make it so large. */
const group = async (size: number) =>
  (await ana.createConv({ members: ['ben', ...crowd.slice(0, size - 2)], joinPolicy: 'OPEN' })).conv.id;
const modeOf = async (conv: string) =>
  (await ana.ask<{ conv: { mode: string } }>(`query ($id: ID!) { conv(id: $id) { mode } }`, { id: conv })).conv.mode;
/** As if the last switch were long ago. */
const endBoth = (conv: string) =>
  world.app.deps.store.pool.query('UPDATE conversations SET both_until = NULL WHERE id = $1', [conv]);
/** A group in PULL mode of ana, ben and three others. */
const pulled = async () => {
  const conv = await group(5);
  await endBoth(conv);
  return conv;
};
const ways = (conv: string, seq: number) => ({
  named: bus.named(conv, seq).toSorted(),
  channel: bus.toldConv(conv).filter((hint) => hint.seq === seq).length,
});

describe('the mode', () => {
  test('[H7] is PULL from T members on, PUSH again below 0.8 T, in between as it was', async () => {
    const conv = await group(4);
    expect(await modeOf(conv)).toBe('PUSH');
    const steps: readonly [string, () => Promise<unknown>][] = [
      ['PULL', () => ana.addMembers(conv, ['u3'])], // 5
      ['PULL', () => ana.addMembers(conv, ['u3'])], // who is in already
      ['PULL', () => ana.removeMember(conv, 'u3')], // 4 is not below 0.8 of 5
      ['PUSH', () => ben.leave(conv)], // 3
      ['PUSH', () => ben.join(conv)], // 4
      ['PULL', () => cho.join(conv)], // 5
    ];
    for (const [mode, act] of steps) {
      await act();
      expect(await modeOf(conv)).toBe(mode);
    }
  });

  test('[H7] is right from the first event on where a group begins large', async () => {
    expect(await modeOf(await group(5))).toBe('PULL');
  });

  test('[H7] changes in the membership transaction: a rollback leaves it', async () => {
    const conv = await group(4);
    fails = (name) => name === 'before commit';
    await expect(ana.addMembers(conv, ['u3'])).rejects.toThrow();
    fails = () => false;
    expect(await modeOf(conv)).toBe('PUSH');
    expect((await ana.conv(conv)).head).toBe(2);
  });

  test('[H7] members come and go in parallel around the border: the mode fits the number in the end', async () => {
    const conv = await group(2);
    for (let round = 0; round < 3; round++) {
      await Promise.all(crowd.map((user) => ana.addMembers(conv, [user])));
      expect(await modeOf(conv)).toBe('PULL');
      await Promise.all(crowd.map((user) => ana.removeMember(conv, user)));
      expect(await modeOf(conv)).toBe('PUSH');
    }
  });
});

describe('who is told', () => {
  test('[H7] PUSH: each member by name; PULL: the channel once, after a switch for a while both', async () => {
    const conv = await group(4);
    const { event: pushed } = await ana.send(conv, 'pushed');
    expect(ways(conv, pushed.seq)).toEqual({ named: ['ana', 'ben', 'u1', 'u2'], channel: 0 });
    await ana.addMembers(conv, ['u3']);
    const everyone = ['ana', 'ben', 'u1', 'u2', 'u3'];
    expect(ways(conv, 4)).toEqual({ named: everyone, channel: 1 });
    const { event: both } = await ana.send(conv, 'both');
    await expect.poll(() => ways(conv, both.seq)).toEqual({ named: everyone, channel: 1 });
    await endBoth(conv);
    const { event } = await ana.send(conv, 'pulled');
    await expect.poll(() => ways(conv, event.seq)).toEqual({ named: [], channel: 1 });
    await ana.recall(conv, event.seq);
    await expect.poll(() => ways(conv, event.seq + 1)).toEqual({ named: [], channel: 1 });
    await ana.removeMember(conv, 'u3');
    expect(ways(conv, event.seq + 2).named).toEqual(['u3']); // the subject always
    await ana.removeMember(conv, 'u2'); // back to PUSH
    await expect.poll(() => ways(conv, event.seq + 3)).toEqual({ named: ['ana', 'ben', 'u1', 'u2'], channel: 1 });
    await endBoth(conv);
    const { event: last } = await ana.send(conv, 'pushed again');
    expect(ways(conv, last.seq)).toEqual({ named: ['ana', 'ben', 'u1'], channel: 0 });
  });

  test('[H7] a switch is told to every member by name', async () => {
    const conv = await group(4);
    const switches = (user: string) => bus.told(user, conv).filter(({ kind }) => kind === 'mode').length;
    await ana.addMembers(conv, ['u3']);
    expect(['ana', 'ben', 'u1', 'u2'].map(switches)).toEqual([1, 1, 1, 1]);
    await ana.removeMember(conv, 'u3');
    await ana.removeMember(conv, 'u2');
    expect(['ana', 'ben', 'u1'].map(switches)).toEqual([2, 2, 2]);
  });

  test('[H7] [H1] whom a hint reaches is one statement, however many listen here', async () => {
    const conv = await pulled();
    const devices = await Promise.all(['ben', 'ben', 'u1', 'u2', 'u3'].map((user) => world.device(user)));
    const lives = await Promise.all(devices.map(listenToMessages));
    const counted = await countStatements('channels.mayHear', async () => {
      const { event } = await ana.send(conv, 'x');
      for (const live of lives) expect((await live.next()).seq).toBe(event.seq);
    });
    expect(counted).toBe(1);
    await Promise.all(lives.map((live) => live.socket.close()));
  });
});

describe('a subscriber of a conversation in PULL mode', () => {
  test('[H2] [H7] gets what is sent as soon as the first item is there, every time', async () => {
    const conv = await pulled();
    for (let turn = 0; turn < 30; turn++) {
      const live = await listenToMessages(ben);
      const { event } = await ana.send(conv, 'at once');
      expect((await live.next()).seq).toBe(event.seq);
      await live.socket.close();
    }
  });

  test('[H7] [M2] who is kicked gets the kick and nothing later; who comes gets the coming first', async () => {
    const conv = await pulled();
    const [live, others] = await Promise.all([listenToMessages(ben), listenToMessages(await world.device('u1'))]);
    const { event } = await ana.send(conv, 'seen');
    expect((await live.next()).seq).toBe(event.seq);
    await ana.removeMember(conv, 'ben');
    await live.until(({ seq }) => seq === event.seq + 1);
    const { event: hidden } = await ana.send(conv, 'hidden');
    await others.until(({ seq }) => seq === hidden.seq);
    await ben.join(conv);
    const { event: news } = await ana.send(conv, 'news');
    await live.until(({ seq, resync }) => seq === news.seq || resync === 'MODE');
    await others.until(({ seq }) => seq === news.seq);
    const seqs = live.rows.flatMap(({ seq, resync }) => (resync === null ? [seq] : []));
    expect(new Set(seqs).has(hidden.seq)).toBe(false);
    expect(seqs.find((seq) => seq > event.seq + 1)).toBe(hidden.seq + 1); // the join
    await Promise.all([live.socket.close(), others.socket.close()]);
  });

  test('[H7] [H3] is told to look again when the mode has changed, and hears of all that comes', async () => {
    const conv = await group(4);
    const live = await listenToAll(ben);
    const badge = await ben.app.subscribe(ben.credential, `subscription { badgeChanged { unread } }`);
    const unreadIs = (unread: number) =>
      badge.until(({ data }) => (data?.['badgeChanged'] as { unread: number }).unread === unread);
    const isTold = async () => {
      await endBoth(conv);
      const { event } = await ana.send(conv, 'after');
      await live.until((row) => row['seq'] === event.seq);
      await unreadIs((await ben.badge()).unread);
    };
    await ana.addMembers(conv, ['u3']);
    await live.until((row) => row['reason'] === 'MODE');
    await isTold();
    await ana.removeMember(conv, 'u3');
    await isTold();
    await ana.removeMember(conv, 'u2');
    await isTold();
    await Promise.all([live.socket.close(), badge.socket.close()]);
  });

  test('[H3] [H7] is told to look again when it cannot be known whether a hint is for them', async () => {
    const conv = await pulled();
    const live = await listenToMessages(ben);
    const blocker = new pg.Client({ connectionString: world.app.databaseUrl });
    await blocker.connect();
    const sending = (async () => {
      await blocker.query('BEGIN; LOCK TABLE past_periods IN ACCESS EXCLUSIVE MODE');
      const sent = ana.send(conv, 'lost').catch(() => null);
      await someoneWaits(world.app.databaseUrl, () => false);
      // whoever asks for periods now is cut off, until the subscriber has been told
      const cut = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
      await expect.poll(async () => (await blocker.query(cut), live.rows.at(-1)?.resync)).toBe('BUS');
      return sent;
    })();
    await sending.finally(() => blocker.end());
    const { event } = await ana.send(conv, 'later');
    await live.until(({ seq }) => seq === event.seq);
    await live.socket.close();
  });

  test('[H7] a channel is listened to while a member is here: from the first who comes to the last who goes', async () => {
    await world.users('dan', 'eva'); // who are in nothing else
    const conv = (await ana.createConv({ members: ['dan', 'eva', 'u1', 'u2'] })).conv.id;
    const [dan, eva] = await Promise.all([world.device('dan'), world.device('eva')]);
    const before = bus.stats();
    const lives = await Promise.all([dan, dan, eva].map(listenToMessages));
    expect(bus.stats().channels).toBe(before.channels + 3); // dan’s, eva’s and the conversation’s
    await ana.removeMember(conv, 'dan');
    await lives[2]?.until(({ contentType }) => contentType === 'MEMBER_KICK');
    expect(bus.stats().channels).toBe(before.channels + 3);
    await ana.removeMember(conv, 'eva');
    await expect.poll(() => bus.stats().channels).toBe(before.channels + 2);
    await ana.addMembers(conv, ['eva', 'u3']);
    await expect.poll(() => bus.stats().channels).toBe(before.channels + 3);
    await Promise.all(lives.map((live) => live.socket.close()));
    await expect.poll(() => bus.stats()).toEqual(before);
  });
});
