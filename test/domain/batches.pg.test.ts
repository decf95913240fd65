// Several conversations in one request: each item by itself, in the order asked.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { groupsOf, sendMany } from '../support/big-log.js';
import * as documents from '../support/documents.js';
import { holdRows } from '../support/held-lock.js';
import { recordingBus } from '../support/recording-bus.js';
import { countStatements, statementsOf } from '../support/statements.js';
import { someoneWaits } from '../model/failpoint-gate.js';
import { fresh, startWorld, type Actor, type Position, type World } from '../support/world.js';

const bus = recordingBus();
let world: World;
let ana: Actor, ben1: Actor, ben2: Actor;

beforeAll(async () => {
  world = await startWorld({ overrides: { bus } });
  [ana, ben1, ben2] = [
    await world.device('ana'),
    await world.device('ben', 'ben-1'),
    await world.device('ben', 'ben-2'),
  ];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const pool = () => world.app.deps.store.pool;
/** A group of ana's with ben, who sees from 2 on; messages by ana up to `head`. */
async function group(head = 2): Promise<string> {
  const { id } = (await ana.createConv({ members: ['ben'] })).conv;
  if (head > 2) await sendMany(pool(), id, 'ana', head - 2);
  return id;
}
const groups = (n: number, head: number) => groupsOf(pool(), ['ana', 'ben'], n, head);
const readsTold = (conv: string) => bus.told('ben', conv).filter(({ kind }) => kind === 'read');
const codes = (items: readonly { error: { code: string } | null }[]) => items.map(({ error }) => error?.code ?? 'ok');

describe('markReadMany', () => {
  test('[R1] [R2] [R4] an answer for each in the order asked; a bad one fails alone; what moved is announced once', async () => {
    const [open, ahead, lower, left, foreign] = await Promise.all([group(6), group(6), group(6), group(6), group(6)]);
    const { id: stranger } = (await ana.createConv({})).conv;
    await ben1.markRead(lower, 5);
    await ana.removeMember(left, 'ben'); // 7
    await ana.send(left, 'unseen');
    const items = [
      { conv: stranger, seq: 1 },
      { conv: ahead, seq: 7 },
      { conv: open, seq: 4 },
      { conv: 'no id', seq: 1 },
      { conv: lower, seq: 3 },
      { conv: left, seq: 10_000 },
      { conv: randomUUID(), seq: 0 },
      { conv: foreign, seq: 0 },
    ];
    const { items: answers, badge } = await ben1.markReadMany(items);
    expect(codes(answers)).toEqual(['NOT_MEMBER', 'CURSOR_AHEAD', 'ok', 'NOT_MEMBER', 'ok', 'ok', 'NOT_MEMBER', 'ok']);
    const shown = answers.map(({ conv, read, unread, head }) => [conv?.id, read, unread, head]);
    expect(shown).toEqual([
      [undefined, null, null, null],
      [undefined, null, null, 6],
      [open, 4, 2, 6],
      [undefined, null, null, null],
      [lower, 5, 1, 6],
      [left, 7, 0, 7],
      [undefined, null, null, null],
      [foreign, 0, 4, 6],
    ]);
    for (const { conv, read, unread, head } of answers) if (conv) expect(conv).toMatchObject({ read, unread, head });
    expect(badge).toEqual({ ...(await ben2.badge()), asOf: badge.asOf });
    expect([ahead, open, lower, left, foreign].map((id) => readsTold(id).length)).toEqual([0, 1, 1, 1, 0]);
    expect(readsTold(open)).toMatchObject([{ read: 4, unread: 2, head: 6, originDevice: 'ben-1' }]);
  });

  test('[R3] positions of one conversation are merged, each is answered, one that is ahead fails alone', async () => {
    const id = await group(8);
    const { items } = await ben1.markReadMany([3, 6, 9, 4, 6].map((seq) => ({ conv: id, seq })));
    expect(items.map(({ read, error }) => error?.code ?? read)).toEqual([6, 6, 'CURSOR_AHEAD', 6, 6]);
    expect(readsTold(id)).toHaveLength(1);
    expect((await ben2.conv(id)).unread).toBe(2);
    expect((await ben1.markReadMany([])).items).toEqual([]);
  });

  test('[P1] [R5] 200 items, some bad, are one statement; 201 are refused', async () => {
    const ids = await groups(120, 4);
    const items: Position[] = Array.from({ length: 200 }, (_, n) => ({
      conv: n % 5 === 0 ? randomUUID() : (ids[n % 120] ?? ''),
      seq: n % 7 === 0 ? 5 : n < 120 ? 3 : 4,
    }));
    const expected = items.map(({ seq }, n) => (n % 5 === 0 ? 'NOT_MEMBER' : seq === 5 ? 'CURSOR_AHEAD' : 'ok'));
    let answers: { error: { code: string } | null; conv: { id: string; read: number } | null }[] = [];
    const statements = await statementsOf(async () => {
      ({ items: answers } = await ben1.markReadMany(items));
    });
    expect(codes(answers)).toEqual(expected);
    answers.forEach(({ conv }, n) => {
      if (conv) expect(conv.id).toBe(items[n]?.conv);
    });
    const tags = statements.map((text) => /\/\* (\S+) \*\//u.exec(text)?.[1] ?? text);
    const [byWho, ...rest] = tags;
    expect(byWho).toBe('devices.byId');
    // and now and then when it was seen
    const asked = rest.filter((tag) => tag !== 'devices.seen').toSorted();
    expect(asked).toEqual(['BEGIN', 'COMMIT', 'batches.advance', 'conversations.seen', 'unread.badge']);
    const largest = new Map<string, number>();
    items.forEach(({ conv, seq }, n) => {
      if (expected[n] === 'ok') largest.set(conv, Math.max(seq, largest.get(conv) ?? 0));
    });
    const { nodes } = await ben2.convs({ first: 1_000 });
    for (const [id, read] of largest) {
      expect(nodes.find((node) => node.id === id)).toMatchObject({ read, unread: 4 - read });
      expect(readsTold(id)).toHaveLength(1);
    }
    await expect(ben1.markReadMany([...items, { conv: ids[0] ?? '', seq: 4 }])).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      extensions: { limit: 200 },
    });
  });

  test('[R3] [M5] batches in opposite orders, beside single reads and sends, give the maximum without a deadlock', async () => {
    const ids = await groups(20, 12);
    let asked = 0;
    const work = async () => {
      const rounds = Array.from({ length: 10 }, (_, round) => {
        const items = ids.map((conv) => ({ conv, seq: 2 + round }));
        asked += 2;
        return [
          ben1.markReadMany(items),
          ben2.markReadMany(items.toReversed()),
          ben2.markRead(ids[round] ?? '', 12),
          world.asUser('ben').send(ids[19 - round] ?? '', 'hi', { markReadUpTo: 3 }),
        ];
      });
      for (const { items } of (await Promise.all(rounds.flat())) as { items?: { error: unknown }[] }[])
        for (const { error } of items ?? []) expect(error).toBeNull();
    };
    // a deadlock would be tried again: more statements than requests
    expect(await countStatements('batches.advance', work)).toBe(asked);
    const reads = await Promise.all(ids.map(async (id) => (await ben1.conv(id)).read));
    expect(reads).toEqual(ids.map((_, n) => (n < 10 ? 12 : 11)));
  });

  test('[R3] each row that moves has a change number of its own', async () => {
    const ids = await groups(5, 4);
    await ben1.markReadMany(ids.map((conv) => ({ conv, seq: 4 })));
    const { rows } = await pool().query<{ no: string; last: string }>(
      `SELECT m.change_no AS no, u.change_no AS last FROM members m JOIN users u ON u.id = m.user_id
        WHERE m.user_id = 'ben' AND m.conv_id = ANY ($1::uuid[]) ORDER BY m.change_no`,
      [ids],
    );
    const last = Number(rows[0]?.last);
    expect(rows.map(({ no }) => Number(no))).toEqual([4, 3, 2, 1, 0].map((n) => last - n));
  });
});

describe('ackMany', () => {
  test('[D1] [D2] [D3] an answer for each in the order asked; a bad one fails alone; nothing is read', async () => {
    const [open, ahead, lower, left] = await Promise.all([group(6), group(6), group(6), group(6)]);
    await ben1.ack(lower, 5);
    await ana.removeMember(left, 'ben'); // 7
    const { items } = await ben1.ackMany([
      { conv: ahead, seq: 7 },
      { conv: open, seq: 4 },
      { conv: randomUUID(), seq: 1 },
      { conv: lower, seq: 3 },
      { conv: left, seq: 10_000 },
      { conv: open, seq: 2 },
    ]);
    expect(items.map(({ conv, delivered, head, error }) => [conv?.id, delivered, head, error?.code])).toEqual([
      [undefined, null, 6, 'CURSOR_AHEAD'],
      [open, 4, 6, undefined],
      [undefined, null, null, 'NOT_MEMBER'],
      [lower, 5, 6, undefined],
      [left, 7, 7, undefined],
      [open, 4, 6, undefined],
    ]);
    for (const { conv, delivered } of items) if (conv) expect(conv).toMatchObject({ delivered, read: 0 });
    expect((await ben2.conv(open)).delivered).toBe(0);
  });

  test('[D1] [M5] batches in opposite orders give the maximum without a deadlock', async () => {
    const ids = await groups(20, 12);
    const work = async () => {
      await Promise.all(
        Array.from({ length: 10 }, (_, round) => {
          const items = ids.map((conv) => ({ conv, seq: 2 + round }));
          return [ben1.ackMany(items), ben1.ackMany(items.toReversed())];
        }).flat(),
      );
    };
    expect(await countStatements('batches.ack', work)).toBe(20);
    for (const id of ids) expect((await ben1.conv(id)).delivered).toBe(11);
  });

  test('[I3] [I5] the whole is refused and leaves nothing once the device is revoked while it waits', async () => {
    const device = await world.device('ben', fresh('ben-'));
    const id = device.credential.split('.')[0]?.slice(3) ?? '';
    const [one, two] = [await group(6), await group(6)];
    await device.ackMany([one, two].map((conv) => ({ conv, seq: 2 })));
    await using held = await holdRows(world.app.databaseUrl, 'SELECT FROM device_cursors WHERE device_id = $1', [id]);
    let over = false;
    const asked = device.ackMany([one, two].map((conv) => ({ conv, seq: 6 }))).finally(() => (over = true));
    asked.catch(() => undefined);
    await someoneWaits(world.app.databaseUrl, () => over);
    expect(over).toBe(false);
    await world.service.ask(documents.revokeDevice, { deviceId: id });
    await held.letGo();
    await expect(asked).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    const { rows } = await pool().query('SELECT delivered_seq FROM device_cursors WHERE device_id = $1', [id]);
    expect(rows).toEqual([{ delivered_seq: '2' }, { delivered_seq: '2' }]);
  });
});
