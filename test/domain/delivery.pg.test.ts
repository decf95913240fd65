// What each device holds, through the front door: one cursor per device, conversation and install.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FailpointGate, someoneWaits } from '../model/failpoint-gate.js';
import { sendMany } from '../support/big-log.js';
import { recordingBus } from '../support/recording-bus.js';
import { fresh, Refused, startWorld, type Actor, type World } from '../support/world.js';

const bus = recordingBus();
const gate = new FailpointGate();
let world: World;
let ana: Actor, cho: Actor;

beforeAll(async () => {
  world = await startWorld({ overrides: { bus, failpoint: gate.failpoint } });
  [ana, cho] = await Promise.all([world.device('ana'), world.device('cho')]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

let ben = '';
beforeEach(async () => {
  ben = fresh('ben-'); // a user has at most 20 devices
  await world.users(ben);
});

/** A group of ana's with ben, who is in it from seq 2 on, and messages by ana up to `head`. */
async function group(head: number): Promise<string> {
  const { id } = (await ana.createConv({ members: [ben] })).conv;
  if (head > 2) await sendMany(world.app.deps.store.pool, id, 'ana', head - 2);
  return id;
}
const pair = () => Promise.all([world.device(ben), world.device(ben)]);
const delivered = async (device: Actor, id: string) => (await device.conv(id)).delivered;
const deviceOf = ({ credential }: Actor) => /^tm_([^.]+)/u.exec(credential)?.[1] ?? '';
/** 'ok', or the code of the refusal. */
const outcome = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'ok',
    (error: unknown) => {
      if (error instanceof Refused) return error.code;
      throw error;
    },
  );
async function cursorsOf(device: Actor): Promise<unknown[]> {
  const { rows } = await world.app.deps.store.pool.query<Record<string, unknown>>(
    'SELECT install_epoch, delivered_seq::int FROM device_cursors WHERE device_id = $1',
    [deviceOf(device)],
  );
  return rows;
}

describe('one install', () => {
  test('[D1] [D3] an ack is of its device and conversation alone: no other cursor, no read position, no announcement', async () => {
    const [id, other] = [await group(6), await group(6)];
    const [ben1, ben2] = await pair();
    const answer = await ben1.ack(id, 6);
    expect(answer).toMatchObject({ delivered: 6, head: 6, conv: { id, delivered: 6, read: 0, unread: 4 } });
    expect([await delivered(ben1, other), await delivered(ben2, id), await delivered(ana, id)]).toEqual([0, 0, 0]);
    expect((await world.asUser(ben).conv(id)).delivered).toBe(0);
    await ben2.markRead(id, 5);
    expect([await delivered(ben1, id), await delivered(ben2, id)]).toEqual([6, 0]);
    expect(bus.told(ben, id).filter(({ kind }) => kind === 'read')).toHaveLength(1);
  });

  test('[D1] acks in parallel and in any order keep the maximum, and each answers with what is kept', async () => {
    const id = await group(30);
    const [ben1, ben2] = await pair();
    const asked = Array.from({ length: 40 }, (_, n) => (n * 11) % 29); // 0..28, out of order
    const answers = await Promise.all(asked.map((seq) => ben1.ack(id, seq)));
    answers.forEach((answer, n) => {
      expect(answer.delivered).toBeGreaterThanOrEqual(asked[n] ?? 0);
      expect(answer.head).toBe(30);
    });
    expect(await delivered(ben1, id)).toBe(28);
    for (const seq of [27, 28, 0]) expect((await ben1.ack(id, seq)).delivered).toBe(28);
    expect(await delivered(ben2, id)).toBe(0);
  });

  test.each([7, 10_000, 2 ** 53 - 1])(
    '[D2] ack(%i) above head 6 is CURSOR_AHEAD with the head and changes nothing',
    async (seq) => {
      const id = await group(6);
      const [ben1] = await pair();
      for (const kept of [0, 4]) {
        if (kept > 0) await ben1.ack(id, kept);
        await expect(ben1.ack(id, seq)).rejects.toMatchObject({
          code: 'CURSOR_AHEAD',
          extensions: { head: 6, retryable: false },
        });
        expect(await delivered(ben1, id)).toBe(kept);
      }
    },
  );

  test('[D2] [M3] a former member is lowered to the end of the last period, without an error and without the head', async () => {
    const id = await group(6);
    const [ben1, ben2] = await pair();
    await ben1.ack(id, 3);
    await ana.removeMember(id, ben); // seq 7
    await sendMany(world.app.deps.store.pool, id, 'ana', 5);
    for (const seq of [10_000, 12, 8, 7, 5]) {
      expect(await ben1.ack(id, seq)).toMatchObject({ delivered: 7, head: 7, conv: { delivered: 7, head: 7 } });
    }
    expect((await ben2.ack(id, 5)).delivered).toBe(5);
  });

  test('[D4] an old backup does not lower delivered, and the device is whole again from its own cursor', async () => {
    const id = await group(9);
    const [ben1] = await pair();
    const held = await ben1.catchUp(id);
    await ben1.ack(id, 9);
    const backup = held.filter(({ seq }) => seq <= 4);
    expect((await ben1.ack(id, 4)).delivered).toBe(9);
    expect([...backup, ...(await ben1.catchUp(id, 4))]).toEqual(held);
    expect(await delivered(ben1, id)).toBe(9);
  });

  test('[D2] [M4] a stranger, a missing and a malformed conversation are all NOT_MEMBER', async () => {
    const id = await group(6);
    for (const conv of [id, '00000000-0000-7000-8000-000000000000', 'nothing']) {
      for (const seq of [0, 5, 10_000]) expect(await outcome(cho.ack(conv, seq))).toBe('NOT_MEMBER');
    }
    expect(await cursorsOf(cho)).toEqual([]);
  });
});

describe('installs', () => {
  test('[I3] 100 acks of the old install in parallel with a reinstall: what remains is of the new one', async () => {
    for (let round = 0; round < 2; round++) {
      const id = await group(12);
      const [old] = await pair();
      await old.ack(id, 2);
      const acks = Array.from({ length: 100 }, (_, n) => outcome(old.ack(id, 3 + (n % 10))));
      const { credential } = await old.reinstall(fresh('install'));
      const renewed = old.as(credential);
      expect(await delivered(renewed, id)).toBe(0);
      expect((await renewed.ack(id, 1)).delivered).toBe(1);
      for (const code of await Promise.all(acks)) expect(['ok', 'STALE_INSTALL']).toContain(code);
      expect(await delivered(renewed, id)).toBe(1);
      expect(await outcome(old.ack(id, 12))).toBe('STALE_INSTALL');
      expect(await cursorsOf(renewed)).toEqual([{ install_epoch: 1, delivered_seq: 1 }]);
    }
  });

  test('[I3] an ack that a reinstall has overtaken while it waited is refused, and never shows', async () => {
    for (const before of [0, 3]) {
      const id = await group(6);
      const [old] = await pair();
      if (before > 0) await old.ack(id, before);
      else await old.conv(id);
      const stop = gate.stopAt('before commit');
      const reinstall = old.reinstall(fresh('install'));
      await stop.reached;
      const progress = { isOver: false };
      const late = outcome(old.ack(id, 5)).finally(() => (progress.isOver = true));
      await someoneWaits(world.app.databaseUrl, () => progress.isOver);
      const isOvertaken = !progress.isOver; // without a row to wait for it may come first
      stop.letGo();
      const renewed = old.as((await reinstall).credential);
      expect(await late).toBe(isOvertaken ? 'STALE_INSTALL' : 'ok');
      if (before > 0) expect(isOvertaken).toBe(true);
      expect(await delivered(renewed, id)).toBe(0);
      expect((await renewed.ack(id, 1)).delivered).toBe(1);
      expect(await cursorsOf(renewed)).toEqual([{ install_epoch: 1, delivered_seq: 1 }]);
    }
  });

  test('[I2] [I3] a reinstall repeated after a lost answer gives the same credential, and no late ack ever shows', async () => {
    const id = await group(8);
    const [old] = await pair();
    await old.ack(id, 8);
    const installId = fresh('install');
    const storm = Array.from({ length: 20 }, () => outcome(old.ack(id, 7)));
    await old.reinstall(installId); // the answer is lost
    storm.push(...Array.from({ length: 20 }, () => outcome(old.ack(id, 6))));
    const again = await Promise.all(Array.from({ length: 5 }, () => old.reinstall(installId)));
    const [first] = again;
    for (const answer of again) expect(answer).toEqual({ ...first, installEpoch: 1 });
    const renewed = old.as(first?.credential ?? '');
    expect(await renewed.reinstall(installId)).toEqual(first);
    await Promise.all(storm);
    expect(await delivered(renewed, id)).toBe(0);
    expect((await renewed.ack(id, 2)).delivered).toBe(2);
    expect(await outcome(old.ack(id, 8))).toBe('STALE_INSTALL');
    expect(await delivered(renewed, id)).toBe(2);
  });

  test('[I3] rows of an earlier install that nobody deleted count for nothing and are overwritten', async () => {
    const [id, other] = [await group(9), await group(9)];
    const [old] = await pair();
    const renewed = old.as((await old.reinstall(fresh('install'))).credential);
    await world.app.deps.store.pool.query(
      'INSERT INTO device_cursors (device_id, conv_id, install_epoch, delivered_seq) SELECT $1, unnest($2::uuid[]), 0, 9',
      [deviceOf(old), [id, other]],
    );
    expect([await delivered(renewed, id), await delivered(renewed, other)]).toEqual([0, 0]);
    expect((await renewed.convs({ lagging: true, first: 1_000 })).nodes.map((conv) => conv.id)).toEqual(
      expect.arrayContaining([id, other]),
    );
    expect((await renewed.ack(id, 0)).delivered).toBe(0);
    expect((await renewed.ack(id, 1)).delivered).toBe(1);
    expect(await delivered(renewed, id)).toBe(1);
  });

  test('[I2] [I3] a device registered anew starts at 0; the lost credential acks nothing', async () => {
    const id = await group(6);
    const [old] = await pair();
    await old.ack(id, 6);
    const renewed = await world.device(ben, deviceOf(old));
    expect(await delivered(renewed, id)).toBe(0);
    expect(await outcome(old.ack(id, 6))).toBe('UNAUTHENTICATED');
    expect((await renewed.ack(id, 2)).delivered).toBe(2);
  });
});
