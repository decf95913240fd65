// The unread number through the front door, against plain counting of what sync shows.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { joinMany, sendMany } from '../support/big-log.js';
import { blocksOf } from '../support/blocks.js';
import { fresh, startWorld, type Actor, type EventRow, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben1: Actor, ben2: Actor, cho: Actor;

beforeAll(async () => {
  world = await startWorld();
  [ana, ben1, ben2, cho] = await Promise.all([
    world.device('ana'),
    world.device('ben'),
    world.device('ben'),
    world.device('cho'),
  ]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** A group of ana's with ben, who is in it from seq 2 on. */
async function group(more: Readonly<Record<string, unknown>> = {}): Promise<string> {
  return (await ana.createConv({ members: ['ben'], ...more })).conv.id;
}
async function send(actor: Actor, id: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await actor.send(id, String(n));
}
/** All of 0..count-1, so many at a time. */
async function inLanes(lanes: number, count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
const unread = async (actor: Actor, id: string) => (await actor.conv(id)).unread;

/** U1 for a user who sees all of these events: what it was when the log ended at `head` and the user had read to `read`. */
const countAt = (log: readonly EventRow[], user: string, { head, read }: { head: number; read: number }) =>
  log
    .filter(({ seq, kind, sender }) => seq > read && seq <= head && kind === 'MESSAGE' && sender?.id !== user)
    .filter(({ recalledBy }) => recalledBy === null || recalledBy > head)
    .map(({ seq }) => seq);

describe('what counts', () => {
  test('[U1] [L5] recalled messages stop counting one by one, and a device that comes online sees them marked', async () => {
    const id = await group();
    await send(ana, id, 3); // 3, 4, 5
    expect(await unread(ben1, id)).toBe(3);
    for (const [seq, left] of [
      [4, 2],
      [5, 1],
    ] as const) {
      await ana.recall(id, seq);
      expect([await unread(ben1, id), await unread(ben2, id)]).toEqual([left, left]);
    }
    const recalled = (await ben2.catchUp(id)).filter((event) => event.recalled);
    expect(recalled).toMatchObject([
      { seq: 4, content: null, text: null, recalledBy: 6 },
      { seq: 5, content: null, text: null, recalledBy: 7 },
    ]);
  });

  test('[U1] [L5] the newest message is recalled: the head stays above it, lastEvent shows no body, markRead(head) works', async () => {
    const id = await group();
    await send(ana, id, 2);
    await ana.recall(id, 4);
    const listed = (await ben1.convs()).nodes.find((conv) => conv.id === id);
    expect(listed).toMatchObject({
      head: 5,
      unread: 1,
      lastEvent: { seq: 5, content: null, target: { seq: 4, content: null } },
    });
    expect(await ben1.markRead(id, 5)).toMatchObject({ read: 5, unread: 0 });
  });

  test('[U1] all unread ones recalled, then markRead(head): nothing below zero, then or later', async () => {
    const id = await group();
    await send(ana, id, 3);
    for (const seq of [3, 4, 5]) await ana.recall(id, seq);
    expect(await unread(ben1, id)).toBe(0);
    expect(await ben1.markRead(id, 8)).toMatchObject({ read: 8, unread: 0 });
    await send(ana, id, 1);
    expect(await unread(ben1, id)).toBe(1);
    await ana.recall(id, 9);
    expect(await unread(ben1, id)).toBe(0);
  });

  test('[U1] [U2] never opened: two messages are 2; those before joining, or visible from before, are none', async () => {
    const id = await group();
    await send(ana, id, 2);
    expect(await ben1.conv(id)).toMatchObject({ read: 0, unread: 2 });
    for (const historyVisible of [false, true]) {
      const late = await group({ historyVisible });
      await send(ana, late, 5);
      await ana.addMembers(late, ['cho']);
      expect(await unread(cho, late)).toBe(0);
      await send(ana, late, 1);
      expect(await unread(cho, late)).toBe(1);
      expect((await cho.audit(late)).seqs).toEqual([9]);
    }
  });

  test('[U1] [I2] one’s own are not unread on any device, nor after a reinstall', async () => {
    const id = await group();
    await send(ben1, id, 2);
    expect([await unread(ben2, id), await unread(ana, id)]).toEqual([0, 2]);
    const device = await world.device('ben');
    await device.send(id, 'one more');
    const { credential } = await device.reinstall(fresh('install'));
    expect(await unread(device.as(credential), id)).toBe(0);
  });

  test('[U1] joining, leaving, being removed and recalls take seqs and never count', async () => {
    const id = await group({ joinPolicy: 'OPEN' });
    await send(ana, id, 1);
    const steps: (() => Promise<unknown>)[] = [
      () => cho.join(id),
      () => cho.leave(id),
      () => ana.addMembers(id, ['cho']),
      () => ana.removeMember(id, 'cho'),
      () => ben1.send(id, 'own').then(() => ben1.recall(id, 8)),
    ];
    for (const step of steps) {
      const { head } = await ben1.conv(id);
      await step();
      const now = await ben1.conv(id);
      expect(now.head).toBeGreaterThan(head);
      expect(now.unread).toBe(1);
    }
    expect((await ben1.audit(id)).seqs).toEqual([3]);
  });

  test('[U1] [L7] what retention removed is not unread, whatever the read position', async () => {
    for (const read of [0, 4, 8]) {
      const id = await group();
      await send(ana, id, 8); // 3..10
      await ben1.markRead(id, read);
      const { conversations } = world.app.deps.store;
      await conversations.raiseFloor(id as never, 7);
      const left = { unread: 10 - Math.max(read, 6), seqs: [7, 8, 9, 10].filter((seq) => seq > read) };
      for (const rows of [0, 2, 100]) {
        if (rows > 0) await conversations.prune(id as never, rows);
        expect(await ben1.audit(id)).toMatchObject({ ...left, read });
        expect(await unread(ben2, id)).toBe(left.unread);
      }
    }
  });
});

describe('under load', () => {
  test('[U1] [U2] [R3] 100 sends in parallel with 100 reads by two devices: at rest exactly what a plain count says', async () => {
    for (let round = 0; round < 2; round++) {
      const id = await group();
      await send(ana, id, 5);
      const read = async (n: number) => {
        const device = n % 2 ? ben1 : ben2;
        await device.markRead(id, n % 3 ? 2 + (n % 6) : (await device.conv(id)).head);
      };
      const write = (n: number) => (n % 10 ? ana : ben1).send(id, String(n));
      await Promise.all([inLanes(4, 100, read), inLanes(4, 100, write)]);
      const [state, log] = [await ben1.conv(id), await ben1.catchUp(id)];
      expect(log.map(({ seq }) => seq)).toEqual(Array.from({ length: 106 }, (_, n) => n + 2));
      const seqs = countAt(log, 'ben', state);
      expect([state.unread, await unread(ben2, id)]).toEqual([seqs.length, seqs.length]);
      expect((await ben2.audit(id)).seqs).toEqual(seqs);
    }
  }, 90_000);

  test('[U3] [U6] while messages, recalls and reads go on, every answer is the count at its own head', async () => {
    const id = await group();
    let isOver = false;
    const seen: { head: number; read: number; unread: number; seqs?: readonly number[] }[] = [];
    const watch = async (look: () => Promise<(typeof seen)[number] | undefined>) => {
      while (!isOver) {
        const answer = await look();
        if (answer) seen.push(answer);
      }
    };
    const writers = [
      (async () => {
        for (let n = 0; n < 60; n++) {
          const { seq } = (await ana.send(id, String(n))).event;
          if (n % 4 === 3) await ana.recall(id, seq);
        }
      })(),
      (async () => {
        for (let n = 0; n < 15; n++) seen.push((await ben2.send(id, String(n))).conv);
      })(),
      (async () => {
        for (let n = 0; n < 15; n++) seen.push(await ben2.markRead(id, (await ben2.conv(id)).head));
      })(),
    ];
    const watchers = [
      watch(async () => (await ben1.convs({ first: 100 })).nodes.find((conv) => conv.id === id)),
      watch(() => ben1.audit(id, { first: 1_000 })),
      watch(async () => (await ben1.sync([{ conv: id, after: 0 }], 1)).items[0]?.conv ?? undefined),
    ];
    await Promise.all(writers).finally(() => (isOver = true));
    await Promise.all(watchers);
    const log = await ana.catchUp(id);
    expect(seen.length).toBeGreaterThan(40);
    for (const { head, read, unread: number, seqs } of seen) {
      const expected = countAt(log, 'ben', { head, read });
      expect({ head, read, number }).toEqual({ head, read, number: expected.length });
      if (seqs) expect(seqs).toEqual(expected);
    }
  }, 90_000);

  test('[R5] [U2] markRead, then convs on the other device, a thousand times: never a stale read', async () => {
    await world.users('reader');
    const [phone, laptop] = [await world.device('reader'), await world.device('reader')];
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => (await ana.createConv({ members: ['reader'] })).conv.id),
    );
    for (const id of ids) await sendMany(world.app.deps.store.pool, id, 'ana', 200);
    const lane = async (id: string) => {
      for (let seq = 3; seq <= 202; seq++) {
        const [one, other] = seq % 2 ? [phone, laptop] : [laptop, phone];
        await one.ask(`mutation { markRead(conv: "${id}", seq: ${seq}) { read } }`);
        type Answer = { convs: { nodes: { id: string; read: number; unread: number }[] } };
        const { convs } = await other.ask<Answer>('{ convs(first: 5) { nodes { id read unread } } }');
        expect(convs.nodes.find((conv) => conv.id === id)).toEqual({ id, read: seq, unread: 202 - seq });
      }
    };
    await Promise.all(ids.map(lane));
  }, 120_000);
});

test('[U4] one conversation’s unread costs the same with 30,000 unread and 3,000 members as with 3 and 2', async () => {
  const { pool } = world.app.deps.store;
  const [small, big, recalls] = [await group(), await group(), await group()];
  await joinMany(pool, big, 3_000);
  for (const [id, count] of [
    [small, 3],
    [big, 30_000],
    [recalls, 1_000],
  ] as const)
    await sendMany(pool, id, 'ana', count);
  for (let seq = 900; seq < 920; seq++) await ana.recall(recalls, seq);
  const look = (id: string) => [`SELECT * FROM conv_state WHERE user_id = 'ben' AND conv_id = $1`, [id]] as const;
  const [few = 0, many = 0, recalled = 0, counting = 0] = await blocksOf(world.app.databaseUrl, [
    look(small),
    look(big),
    look(recalls),
    [`SELECT unread_audit('ben', $1, 0, 100000)`, [big]],
  ]);
  expect(counting).toBeGreaterThan(300); // the measure notices rows that are counted
  expect(many).toBeLessThanOrEqual(few + 3);
  expect(recalled).toBeLessThanOrEqual(few + 50); // and the recalled ones among them, one by one
  expect([await unread(ben1, big), await unread(ben2, big), await unread(ben1, recalls)]).toEqual([
    30_000, 30_000, 980,
  ]);
});

test('[U5] [U2] the badge splits muted from unmuted and leaves out what was left or dissolved; equal on all devices', async () => {
  await world.users('dan');
  const [phone, laptop] = [await world.device('dan'), await world.device('dan')];
  const ids: string[] = [];
  for (let n = 1; n <= 5; n++) {
    const { id } = (await ana.createConv({ members: ['dan'] })).conv;
    ids.push(id);
    await send(ana, id, n);
  }
  const [read = '', muted = '', plain = '', left = '', dissolved = ''] = ids;
  const badge = async () => {
    const [one, other] = [await phone.badge(), await laptop.badge()];
    const { unread: number, mutedUnread, convs } = one;
    expect({ ...one, asOf: '' }).toEqual({ ...other, asOf: '' });
    return { unread: number, mutedUnread, convs };
  };
  expect(await badge()).toEqual({ unread: 15, mutedUnread: 0, convs: 5 });
  await phone.setMuted(muted, true);
  expect(await badge()).toEqual({ unread: 13, mutedUnread: 2, convs: 4 });
  expect((await phone.markRead(read, 3)).badge).toMatchObject({ unread: 12, mutedUnread: 2, convs: 3 });
  await ana.removeMember(left, 'dan');
  expect(await badge()).toEqual({ unread: 8, mutedUnread: 2, convs: 2 });
  expect(await unread(phone, left)).toBe(4); // the former member's own view keeps its number
  await world.app.deps.store.pool.query('UPDATE conversations SET dissolved_seq = head WHERE id = $1', [dissolved]);
  expect(await badge()).toEqual({ unread: 3, mutedUnread: 2, convs: 1 });
  expect(await unread(laptop, plain)).toBe(3);
});

describe('the audit', () => {
  test('[U6] pages add up to the number, and the service asks for any user', async () => {
    const id = await group();
    await send(ana, id, 12); // 3..14
    await ana.recall(id, 5);
    await ben1.send(id, 'own');
    await ben1.markRead(id, 4);
    const seqs: number[] = [];
    for (let after = 0, hasMore = true; hasMore; after = seqs.at(-1) ?? 0) {
      const page = await ben1.audit(id, { after, first: 4 });
      expect(page).toMatchObject({ unread: 9, head: 16, read: 4 });
      seqs.push(...page.seqs);
      ({ hasMore } = page);
    }
    expect(seqs).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14]);
    expect(await world.service.audit(id, { user: 'ben' })).toMatchObject({ unread: 9, seqs, hasMore: false });
    expect(await world.service.audit(id, { user: 'ana' })).toMatchObject({ unread: 1, seqs: [16] });
  });

  test('[U6] [M4] [P1] strangers, others’ numbers and pages that are too large are refused', async () => {
    const id = await group();
    await expect(cho.audit(id)).rejects.toMatchObject({ code: 'NOT_MEMBER' });
    await expect(world.service.audit(id, { user: 'cho' })).rejects.toMatchObject({ code: 'NOT_MEMBER' });
    await expect(ben1.audit(id, { user: 'ana' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(ben1.audit(id, { first: 1_001 })).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      extensions: { limit: 1_000 },
    });
  });
});
