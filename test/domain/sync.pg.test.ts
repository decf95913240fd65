// Catching up, paging back and paging the list of conversations, as devices that were away do.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendMany } from '../support/big-log.js';
import { listenToMessages } from '../support/live-hints.js';
import { startWorld, type Actor, type EventRow, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor;

beforeAll(async () => {
  world = await startWorld();
  [ana, ben] = await Promise.all([world.device('ana'), world.device('ben')]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** A group of ana's with ben, who is in it from seq 2 on, and messages by ana up to `head`. */
async function group(head: number, members = ['ben']): Promise<string> {
  const { id } = (await ana.createConv({ members })).conv;
  if (head > 2) await sendMany(world.app.deps.store.pool, id, 'ana', head - 2);
  return id;
}
const more = (id: string, count: number) => sendMany(world.app.deps.store.pool, id, 'ana', count);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);
const seqsOf = (events: readonly EventRow[]) => events.map(({ seq }) => seq);

/** All of history from its newest end, in pages of `last`. */
async function pageBack(
  actor: Actor,
  conv: string,
  last: number,
  between: () => Promise<unknown> = () => Promise.resolve(),
) {
  const found: EventRow[] = [];
  for (let before: string | null = null; ;) {
    const { nodes, pageInfo }: Awaited<ReturnType<Actor['history']>> = await actor.history(conv, { last, before });
    found.unshift(...nodes);
    expect(pageInfo.startCursor).toBe(nodes[0] ? String(nodes[0].seq) : null);
    if (!pageInfo.hasPreviousPage) return found;
    expect(nodes).toHaveLength(last); // a hidden gap does not shorten a page
    before = pageInfo.startCursor;
    await between();
  }
}

describe('what is visible', () => {
  test('[S1] [S4] [M1] [M2] periods [5, 10] and [20, …] are exactly what sync, history, the last event and unread show', async () => {
    const id = await group(4, ['cho']);
    await ana.addMembers(id, ['ben']); // 5
    await more(id, 4);
    await ana.removeMember(id, 'ben'); // 10
    await more(id, 9);
    const left = (await ben.convs({ includeLeft: true, first: 1_000 })).nodes.find((conv) => conv.id === id);
    expect(left).toMatchObject({ head: 10, unread: 4, joined: false, lastEvent: { seq: 10 } });
    expect((await ben.sync([{ conv: id, after: 10 }])).items[0]).toMatchObject({
      events: [],
      through: 10,
      head: 10,
      hasMore: false,
    });
    await ana.addMembers(id, ['ben']); // 20
    await more(id, 4);
    const visible = [...range(5, 10), ...range(20, 24)];
    for (const budget of [1, 4, 6, 7, 100]) expect(seqsOf(await ben.catchUp(id, 0, budget))).toEqual(visible);
    for (const after of [9, 10, 12, 19]) {
      expect(seqsOf(await ben.catchUp(id, after, 2))).toEqual(visible.filter((seq) => seq > after));
    }
    for (const last of [1, 3, 5, 11]) expect(seqsOf(await pageBack(ben, id, last))).toEqual(visible);
    const forward = await ben.history(id, { first: 4, after: '8' });
    expect([seqsOf(forward.nodes), forward.pageInfo.hasNextPage]).toEqual([[9, 10, 20, 21], true]);
    expect(await ben.audit(id)).toMatchObject({ unread: 8, seqs: [6, 7, 8, 9, 21, 22, 23, 24] });
    expect((await ben.convs({ first: 1_000 })).nodes.find((conv) => conv.id === id)).toMatchObject({
      head: 24,
      unread: 8,
      lastEvent: { seq: 24 },
    });
  });

  test('[S1] [M1] who left at 3 and came back at 6 never sees 4 and 5, and keeps what was before', async () => {
    const id = await group(2);
    await ben.leave(id); // 3
    await more(id, 2);
    expect((await ben.sync([{ conv: id, after: 0 }])).items[0]).toMatchObject({ through: 3, head: 3, hasMore: false });
    await ana.addMembers(id, ['ben']); // 6
    await ana.send(id, 'hello again');
    expect(seqsOf(await ben.catchUp(id))).toEqual([2, 3, 6, 7]);
    expect(seqsOf(await pageBack(ben, id, 3))).toEqual([2, 3, 6, 7]);
    expect(await ben.conv(id)).toMatchObject({ unread: 1, head: 7 });
  });

  test('[S1] [L5] a recall of seq 5 reaches a device that was offline at seq 8', async () => {
    const id = await group(8);
    await ana.recall(id, 5);
    const [event, ...rest] = await ben.catchUp(id, 8);
    expect(rest).toEqual([]);
    expect(event).toMatchObject({
      seq: 9,
      kind: 'RECALL',
      content: null,
      target: { seq: 5, recalled: true, content: null },
    });
  });

  test('[S4] paging back while messages come in: no skip and no duplicate', async () => {
    const id = await group(60);
    const found = await pageBack(ben, id, 7, () => ana.send(id, 'meanwhile'));
    expect(seqsOf(found)).toEqual(range(2, 60));
  });

  test('[L7] [S4] [S1] below the floor nothing exists, rows or not: seqs go on, positions hold, history stops there', async () => {
    const id = await group(20);
    await ben.ack(id, 20);
    await ben.markRead(id, 12);
    const { conversations } = world.app.deps.store;
    await conversations.raiseFloor(id as never, 10);
    for (const rows of [0, 4, 100]) {
      if (rows > 0) await conversations.prune(id as never, rows);
      expect(seqsOf(await ben.catchUp(id, 0, 3))).toEqual(range(10, 20));
      expect(seqsOf(await pageBack(ben, id, 4))).toEqual(range(10, 20));
      expect(await ben.conv(id)).toMatchObject({ minSeq: 10, head: 20, read: 12, delivered: 20, unread: 8 });
    }
    expect((await ana.send(id, 'next')).event.seq).toBe(21);
  });
});

describe('the budget', () => {
  test('[S1] [S2] [U2] 500 messages while offline in pages of 50: all of them, once each, and unread right at once', async () => {
    const id = await group(502);
    expect((await ben.convs({ first: 1_000 })).nodes.find((conv) => conv.id === id)?.unread).toBe(500);
    let pages = 0;
    const found: number[] = [];
    for (let after = 2, hasMore = true; hasMore; pages++) {
      const { items, complete } = await ben.sync([{ conv: id, after }], 50);
      const [item] = items;
      found.push(...seqsOf(item?.events ?? []));
      ({ through: after = 0, hasMore = false } = item ?? {});
      expect(complete).toBe(!hasMore);
    }
    expect(found).toEqual(range(3, 502));
    expect(pages).toBe(10);
  });

  test('[S2] one budget goes round: small backlogs complete, large ones share the rest, none is left out', async () => {
    const heads = [5, 42, 42, 3, 42];
    const ids = await Promise.all(heads.map((head) => group(head)));
    const { items, complete } = await ben.sync(
      ids.map((conv) => ({ conv, after: 2 })),
      30,
    );
    expect(complete).toBe(false);
    expect(items.map(({ conv }) => conv?.id)).toEqual(ids);
    expect(items.map(({ hasMore }) => hasMore)).toEqual([false, true, true, false, true]);
    const counts = items.map(({ events }) => events.length);
    expect(counts.reduce((a, b) => a + b)).toBe(30);
    expect([counts[0], counts[3]]).toEqual([3, 1]);
    for (const count of [counts[1], counts[2], counts[4]]) expect(count).toBeGreaterThanOrEqual(8);
    items.forEach(({ events, through }) => expect(through).toBe(events.at(-1)?.seq));
  });

  test('[S2] 40 conversations are whole after as many round trips as the budget needs, however small it is', async () => {
    const ids = await Promise.all(Array.from({ length: 40 }, () => group(12)));
    for (const [budget, trips] of [
      [220, 2],
      [25, 18],
    ] as const) {
      const cursors = new Map(ids.map((id) => [id, 0]));
      const found = new Map(ids.map((id) => [id, [] as number[]]));
      let took = 0;
      for (let open = ids; open.length > 0; took++) {
        const { items } = await ben.sync(
          open.map((conv) => ({ conv, after: cursors.get(conv) ?? 0 })),
          budget,
        );
        items.forEach(({ conv, events, through }) => {
          cursors.set(conv?.id ?? '', through);
          found.get(conv?.id ?? '')?.push(...seqsOf(events));
        });
        open = items.filter(({ hasMore }) => hasMore).map(({ conv }) => conv?.id ?? '');
      }
      for (const seqs of found.values()) expect(seqs).toEqual(range(2, 12));
      expect(took).toBe(trips);
    }
  });

  test('[S2] [P1] more than 1,000 conversations or events are refused by the limit', async () => {
    const from = Array.from({ length: 1_001 }, () => ({ conv: 'x', after: 0 }));
    await expect(ben.sync(from)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', extensions: { limit: 1_000 } });
    await expect(ben.sync([], 1_001)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', extensions: { limit: 1_000 } });
    expect((await ben.sync(from.slice(1))).items).toHaveLength(1_000);
    expect(await ben.sync([])).toEqual({ items: [], complete: true });
  });

  test('[S1] [M4] an item fails alone and in its place: foreign, missing and malformed alike', async () => {
    const [mine, foreign] = [await group(5), await group(5, ['cho'])];
    const asked = [foreign, '00000000-0000-7000-8000-000000000000', mine, 'nothing', mine];
    const { items } = await ben.sync(asked.map((conv) => ({ conv, after: 2 })));
    expect(items.map(({ conv, error }) => [conv?.id, error?.code])).toEqual([
      [undefined, 'NOT_MEMBER'],
      [undefined, 'NOT_MEMBER'],
      [mine, undefined],
      [undefined, 'NOT_MEMBER'],
      [mine, undefined],
    ]);
    for (const at of [2, 4]) expect(seqsOf(items[at]?.events ?? [])).toEqual([3, 4, 5]);
    for (const at of [0, 1, 3]) expect(items[at]).toMatchObject({ events: [], head: 0, hasMore: false, reset: null });
  });
});

describe('resets', () => {
  const cases: [what: string, after: number, epoch: number | undefined, reset: object | null][] = [
    ['[S3] above head', 13, undefined, { reason: 'AHEAD', start: 0 }],
    ['[S3] far above head', 2 ** 53 - 1, 1, { reason: 'AHEAD', start: 0 }],
    ['[S3] at head', 12, 1, null],
    ['[S3] of another epoch', 12, 2, { reason: 'EPOCH', start: 0 }],
    ['[S3] of another epoch and above head', 13, 2, { reason: 'EPOCH', start: 0 }],
    ['[S3] below the floor', 5, 1, { reason: 'TRIMMED', start: 7 }],
    ['[S3] right below the floor', 7, 1, null],
    ['[S3] holding nothing', 0, undefined, null],
    ['[S3] holding nothing of another epoch', 0, 9, null],
  ];
  test.each(cases)('%s: after %i, epoch %s', async (_, after, epoch, reset) => {
    const id = await group(12);
    await world.app.deps.store.conversations.raiseFloor(id as never, 8);
    const { items, complete } = await ben.sync([{ conv: id, after, ...(epoch === undefined ? {} : { epoch }) }]);
    const [item] = items;
    expect(item).toMatchObject({ reset, head: 12, error: null, hasMore: reset !== null });
    expect(complete).toBe(reset === null);
    expect(seqsOf(item?.events ?? [])).toEqual(reset ? [] : range(8, 12).filter((seq) => seq > after));
    if (reset) expect(seqsOf(await ben.catchUp(id, item?.reset?.start))).toEqual(range(8, 12));
  });

  test('[S3] [M1] TRIMMED is about what this viewer could see: a floor within a hidden gap is none', async () => {
    const id = await group(4); // ben: 2..5, 11..
    await ben.leave(id); // 5
    await more(id, 5);
    await ana.addMembers(id, ['ben']); // 11
    await more(id, 2);
    const { conversations } = world.app.deps.store;
    await conversations.raiseFloor(id as never, 9);
    expect(seqsOf(await ben.catchUp(id, 5))).toEqual([11, 12, 13]);
    expect((await ben.sync([{ conv: id, after: 4 }])).items[0]?.reset).toEqual({ reason: 'TRIMMED', start: 8 });
    expect((await ana.sync([{ conv: id, after: 5 }])).items[0]?.reset).toEqual({ reason: 'TRIMMED', start: 8 });
  });
});

describe('while the log grows', () => {
  test('[S1] [H4] a device that holds 1..3 and hears only of 5 fetches 4 and 5', async () => {
    const id = await group(3);
    const cursor = (await ben.catchUp(id)).at(-1)?.seq;
    await ana.send(id, 'its hint is lost');
    const live = await listenToMessages(ben);
    await ana.send(id, 'its hint arrives');
    const { seq } = await live.until(({ conv }) => conv?.id === id);
    expect([cursor, seq]).toEqual([3, 5]);
    expect(seqsOf(await ben.catchUp(id, cursor))).toEqual([4, 5]);
    await live.socket.close();
  });

  test('[L2] [S1] [H2] subscribe, then sync, then follow the hints while ana sends: no hole, no duplicate', async () => {
    const id = await group(30);
    const live = await listenToMessages(ben);
    const sends = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let n = 0; n < 25; n++) await ana.send(id, String(n));
      }),
    );
    const found: number[] = [];
    let cursor = 0;
    const fetchRest = async () => {
      for (let hasMore = true; hasMore;) {
        const [item] = (await ben.sync([{ conv: id, after: cursor }], 20)).items;
        found.push(...seqsOf(item?.events ?? []));
        ({ through: cursor = cursor, hasMore = false } = item ?? {});
      }
    };
    await fetchRest();
    while (cursor < 130) {
      const { seq } = await live.until(({ conv }) => conv?.id === id);
      if (seq > cursor) await fetchRest();
    }
    await sends;
    expect(found).toEqual(range(2, 130));
    await live.socket.close();
  });

  test('[L2] [L1] what a reader has seen only grows at its end, in the order of the seqs', async () => {
    const id = await group(2);
    const sending = { isOver: false };
    const sends = Promise.all(
      [ana, ben, ana, ben].map(async (sender) => {
        for (let n = 0; n < 20; n++) await sender.send(id, String(n));
      }),
    ).finally(() => (sending.isOver = true));
    let seen: readonly string[] = [];
    while (!sending.isOver) {
      const [item] = (await ben.sync([{ conv: id, after: 0 }], 1_000)).items;
      const events = item?.events ?? [];
      expect(seqsOf(events)).toEqual(range(2, item?.head ?? 0));
      const now = events.map(({ seq, clientId, content }) => JSON.stringify([seq, clientId, content]));
      expect(now.slice(0, seen.length)).toEqual(seen);
      seen = now;
    }
    await sends;
    expect((await ben.catchUp(id)).length).toBe(81);
  });
});
