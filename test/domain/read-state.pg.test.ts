// Read positions through the front door: one per user and conversation, whichever devices move it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendMany } from '../support/big-log.js';
import { blocksOf } from '../support/blocks.js';
import { listenToAll, listenToReads, type ReadHintRow } from '../support/live-hints.js';
import { recordingBus } from '../support/recording-bus.js';
import { FailpointGate, someoneWaits } from '../model/failpoint-gate.js';
import { startWorld, type Actor, type World } from '../support/world.js';

const bus = recordingBus();
const gate = new FailpointGate();
let world: World;
let ana: Actor, ben1: Actor, ben2: Actor, cho: Actor;

beforeAll(async () => {
  world = await startWorld({ overrides: { bus, failpoint: gate.failpoint } });
  [ana, ben1, ben2, cho] = await Promise.all([
    world.device('ana'),
    world.device('ben', 'ben-1'),
    world.device('ben', 'ben-2'),
    world.device('cho'),
  ]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** A group of ana's with ben and cho, both from seq 2 on, and messages by ana up to `head`. */
async function group(head: number): Promise<string> {
  const { id } = (await ana.createConv({ members: ['ben', 'cho'] })).conv;
  if (head > 2) await sendMany(world.app.deps.store.pool, id, 'ana', head - 2);
  return id;
}
const lean = (actor: Actor, conv: string, seq: number) =>
  actor
    .ask<{ markRead: { read: number; unread: number; head: number } }>(
      `mutation ($conv: ID!, $seq: Seq!) { markRead(conv: $conv, seq: $seq) { read unread head } }`,
      { conv, seq },
    )
    .then(({ markRead }) => markRead);
const readsTold = (conv: string, user = 'ben') => bus.told(user, conv).filter(({ kind }) => kind === 'read');
const shownTo = async (actor: Actor, id: string) => {
  const { read, unread, head } = await actor.conv(id);
  return { read, unread, head };
};

describe('merging', () => {
  test('[R1] [R3] two devices in any interleaving give the maximum, and every answer holds together', async () => {
    const id = await group(42);
    const asked = Array.from({ length: 60 }, (_, n) => (n * 17) % 41); // 0..40, out of order
    const answers = await Promise.all(asked.map((seq, n) => lean(n % 2 ? ben1 : ben2, id, seq)));
    answers.forEach(({ read, unread, head }, n) => {
      expect(read).toBeGreaterThanOrEqual(asked[n] ?? 0);
      expect({ unread, head }).toEqual({ unread: 42 - Math.max(read, 2), head: 42 });
    });
    for (const device of [ben1, ben2]) expect(await shownTo(device, id)).toEqual({ read: 40, unread: 2, head: 42 });
    // each announcement is a rise of its own
    const told = readsTold(id).map((hint) => (hint.kind === 'read' ? hint.read : 0));
    expect(told.toSorted((a, b) => a - b)).toEqual([...new Set(told)].toSorted((a, b) => a - b));
    expect(Math.max(...told)).toBe(40);
  });

  test('[R2] [R4] ten parallel markRead(3) announce once to the other device, repetitions never', async () => {
    const id = await group(5);
    const live = await listenToReads(ben2);
    const answers = await Promise.all(Array.from({ length: 10 }, () => ben1.markRead(id, 3)));
    for (const { read, unread, head } of answers)
      expect({ read, unread, head }).toEqual({ read: 3, unread: 2, head: 5 });
    for (const seq of [3, 2, 0]) expect((await ben1.markRead(id, seq)).read).toBe(3);
    await ben1.markRead(id, 4); // behind whatever the repetitions might have told
    const hints = [await live.next(), await live.next()];
    const hint = (read: number) => {
      const numbers = { read, unread: 5 - read, head: 5 };
      return { resync: null, conv: { id, ...numbers }, ...numbers, originDevice: 'ben-1' };
    };
    expect(hints).toEqual([hint(3), hint(4)]);
    expect(readsTold(id)).toHaveLength(2);
  });

  test('[R1] [R2] offline reads 2, 4, 3 replayed after the other device read 6 answer 6 and announce nothing', async () => {
    const id = await group(8);
    await ben2.markRead(id, 6);
    for (const seq of [2, 4, 3, 6]) {
      const { read, unread, head, conv } = await ben1.markRead(id, seq);
      expect({ read, unread, head }).toEqual({ read: 6, unread: 2, head: 8 });
      expect(conv).toMatchObject({ read: 6, unread: 2 });
    }
    expect(readsTold(id)).toHaveLength(1);
  });

  test.each([6, 10_000, 2 ** 53 - 1])(
    '[R2] markRead(%i) above head 5 is CURSOR_AHEAD with the head and changes nothing',
    async (seq) => {
      const id = await group(5);
      await ben1.markRead(id, 3);
      await expect(ben1.markRead(id, seq)).rejects.toMatchObject({
        code: 'CURSOR_AHEAD',
        extensions: { head: 5, retryable: false },
      });
      expect(await shownTo(ben2, id)).toEqual({ read: 3, unread: 2, head: 5 });
      expect(readsTold(id)).toHaveLength(1);
    },
  );

  test('[R2] a read that clears a marked-unread flag is announced although the position stays', async () => {
    const id = await group(5);
    await ben1.markRead(id, 4);
    const { pool } = world.app.deps.store;
    await pool.query(`UPDATE members SET marked_unread = true WHERE user_id = 'ben' AND conv_id = $1`, [id]);
    await ben2.markRead(id, 3);
    expect(readsTold(id).map((hint) => (hint.kind === 'read' ? [hint.read, hint.unread] : []))).toEqual([
      [4, 1],
      [4, 1],
    ]);
    const { rows } = await pool.query(
      `SELECT marked_unread, read_seq FROM members WHERE user_id = 'ben' AND conv_id = $1`,
      [id],
    );
    expect(rows).toEqual([{ marked_unread: false, read_seq: '4' }]);
    await ben2.markRead(id, 4);
    expect(readsTold(id)).toHaveLength(2);
  });
});

describe('announcing', () => {
  test('[R4] a read is told after its commit, never before', async () => {
    const id = await group(5);
    const stop = gate.stopAt('before commit');
    const marked = ben1.markRead(id, 5);
    await stop.reached;
    expect(readsTold(id)).toEqual([]);
    expect((await ben2.conv(id)).read).toBe(0);
    stop.letGo();
    await marked;
    expect(readsTold(id)).toHaveLength(1);
  });

  test('[R1] [R4] 1,000 reads 1..1000 in a burst: they coalesce for a device that loads more, and the last says 1000', async () => {
    const id = await group(1_000);
    const live = await ben2.app.subscribe(
      ben2.credential,
      `subscription { readChanged { read unread conv { id delivered } } }`,
    );
    // 40 requests of 25 reads each, eight at a time
    let next = 0;
    const lane = async () => {
      for (let from = next; from < 1_000; from = next) {
        next += 25;
        const fields = Array.from(
          { length: 25 },
          (_, n) => `m${n}: markRead(conv: "${id}", seq: ${from + n + 1}) { read }`,
        );
        await ben1.ask(`mutation { ${fields.join(' ')} }`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    const rowOf = (item: { data?: unknown }) => (item.data as { readChanged: ReadHintRow }).readChanged;
    await live.until((item) => rowOf(item).read === 1_000);
    const reads = live.all.slice(1).map((item) => rowOf(item).read);
    // never back; a hint that was overtaken by the numbers loaded for it lets the next one say the same again (H8)
    expect(reads).toEqual(reads.toSorted((a, b) => a - b));
    expect(reads.length).toBeLessThan(readsTold(id).length);
    expect(rowOf(live.all.at(-1) ?? {}).unread).toBe(0);
    expect(await shownTo(ben1, id)).toEqual({ read: 1_000, unread: 0, head: 1_000 });
    await live.socket.close();
  }, 90_000);

  test('[R6] no other user learns a read position: by subscription, query or announcement', async () => {
    const id = await group(6);
    const others = await Promise.all([listenToAll(ana), listenToReads(ana), listenToAll(cho), listenToReads(cho)]);
    const before = await Promise.all([ana.convs(), cho.convs(), ana.conv(id), cho.conv(id), ana.history(id)]);
    await ben1.markRead(id, 5);
    expect(await Promise.all([ana.convs(), cho.convs(), ana.conv(id), cho.conv(id), ana.history(id)])).toMatchObject(
      before
        .map((answer) => ({ ...answer, asOf: expect.anything() as unknown }))
        .map((answer, at) => (at < 2 ? answer : before[at])),
    );
    for (const other of [ana, cho]) {
      await expect(other.audit(id, { user: 'ben' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
      expect((await other.audit(id)).read).toBe(0);
    }
    await ben1.send(id, 'behind the read'); // a read hint would have come first
    const fence = (row: object) => JSON.stringify(row).includes('TEXT');
    await Promise.all([others[0].until(fence), others[2].until(fence)]);
    expect(
      others.flatMap(({ rows }): readonly object[] => rows).filter((row) => JSON.stringify(row).includes('"read":5')),
    ).toEqual([]);
    for (const { rows } of [others[1], others[3]]) expect(rows).toHaveLength(1);
    for (const user of ['ana', 'cho']) expect(readsTold(id, user)).toEqual([]);
    for (const { socket } of others) await socket.close();
  });
});

describe('what does not read', () => {
  test('[R7] [D3] sync, history, convs, ack and send to the end leave read at 0', async () => {
    const id = await group(8);
    await ben1.catchUp(id, 0, 2);
    await ben1.history(id, { last: 50 });
    await ben1.convs();
    await ben1.audit(id);
    await ben1.ack(id, 8);
    await ben1.send(id, 'an answer');
    for (const device of [ben1, ben2]) expect(await shownTo(device, id)).toEqual({ read: 0, unread: 6, head: 9 });
    expect(readsTold(id)).toEqual([]);
  });

  test('[R7] markReadUpTo reads with the send, also on a repeat; above head it refuses the whole send', async () => {
    const id = await group(8);
    const clientId = `once-${id}`;
    await ben1.send(id, 'one', { clientId, markReadUpTo: 4 });
    expect(await shownTo(ben2, id)).toEqual({ read: 4, unread: 4, head: 9 });
    expect((await ben1.send(id, 'one', { clientId, markReadUpTo: 7 })).duplicate).toBe(true);
    expect(await shownTo(ben2, id)).toEqual({ read: 7, unread: 1, head: 9 });
    await expect(ben1.send(id, 'two', { markReadUpTo: 10 })).rejects.toMatchObject({
      code: 'CURSOR_AHEAD',
      extensions: { head: 9 },
    });
    await expect(ben1.send(id, 'one', { clientId, markReadUpTo: 10 })).rejects.toMatchObject({ code: 'CURSOR_AHEAD' });
    expect(await shownTo(ben2, id)).toEqual({ read: 7, unread: 1, head: 9 });
    expect(readsTold(id)).toHaveLength(2);
  });
});

describe('former members', () => {
  test('[R1] [R2] [M3] far ahead is lowered to the end of the last period, without an error and without the head', async () => {
    const id = await group(6);
    const live = await listenToReads(ben2);
    await ana.removeMember(id, 'ben'); // seq 7
    await sendMany(world.app.deps.store.pool, id, 'ana', 5);
    for (const seq of [10_000, 12, 8]) {
      const { read, unread, head, conv } = await ben1.markRead(id, seq);
      expect({ read, unread, head }).toEqual({ read: 7, unread: 0, head: 7 });
      expect(conv).toMatchObject({ read: 7, unread: 0, head: 7, joined: false });
    }
    expect(await live.next()).toMatchObject({ conv: { id }, read: 7, head: 7 });
    expect(readsTold(id)).toHaveLength(1);
    await live.socket.close();
  });

  test('[R1] [M5] a read under way while its user is kicked never passes the end of the period, whoever commits first', async () => {
    for (const first of ['kick', 'read'] as const) {
      const id = await group(6);
      const kick = () => ana.removeMember(id, 'ben');
      const read = () => ben1.markRead(id, 6);
      const stop = gate.stopAt('before commit');
      const one = first === 'kick' ? kick() : read();
      await stop.reached;
      let over = false;
      const other = (first === 'kick' ? read() : kick()).finally(() => (over = true));
      await someoneWaits(world.app.databaseUrl, () => over);
      expect(over).toBe(false);
      stop.letGo();
      await Promise.all([one, other]);
      await ana.send(id, 'later');
      expect(await shownTo(ben1, id)).toEqual({ read: 6, unread: 0, head: 7 });
      expect((await ben2.markRead(id, 10_000)).read).toBe(7);
    }
  });

  test('[R1] [R3] sends, reads at the head and a kick in a storm: read stays within the period and unread exact', async () => {
    for (let round = 0; round < 6; round++) {
      const id = await group(4);
      const sends = Array.from({ length: 10 }, (_, n) => ana.send(id, String(n)));
      const reads = Array.from({ length: 10 }, async (_, n) => {
        const device = n % 2 ? ben1 : ben2;
        const { read, head } = await lean(device, id, (await device.conv(id)).head);
        expect(read).toBeLessThanOrEqual(head);
      });
      await Promise.all([...sends, ...reads, ana.removeMember(id, 'ben')]);
      const { read, unread, head, joined } = await ben1.conv(id);
      const seen = await ben1.catchUp(id);
      expect(joined).toBe(false);
      expect(seen.at(-1)).toMatchObject({ seq: head, contentType: 'MEMBER_KICK' });
      expect(read).toBeLessThanOrEqual(head);
      expect(unread).toBe(seen.filter(({ kind, seq }) => kind === 'MESSAGE' && seq > read).length);
    }
  });
});

test('[R3] [U4] markRead over 30,000 unread touches no more pages than over 3', async () => {
  const [small, big] = [await group(5), await group(30_002)];
  const read = (id: string, seq: number) => [`SELECT * FROM mark_read('ben', 'ben-1', 0, $1, $2)`, [id, seq]] as const;
  const [few = 0, atHead = 0, inside = 0, counting = 0] = await blocksOf(world.app.databaseUrl, [
    read(small, 5),
    read(big, 30_002),
    read(big, 15_000),
    ['SELECT unread_audit($1, $2, 0, 100000)', ['ben', big]],
  ]);
  expect(counting).toBeGreaterThan(300); // the measure notices rows that are counted
  expect(atHead).toBeLessThanOrEqual(few + 5);
  expect(inside).toBeLessThanOrEqual(few + 10); // the event at that position, by its key
  expect((await ben1.markRead(big, 15_000)).unread).toBe(15_002);
  expect((await ben1.markRead(big, 30_002)).unread).toBe(0);
});
