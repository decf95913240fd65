// The specification's own table: ten checks of many-device read and delivery state, each with what must be observed. Read by
// the test beside it and by `npm run evidence`.
import { Refused, type Actor, type World } from '../support/world.js';

export interface Row {
  readonly check: string;
  readonly expected: unknown;
  readonly observed: unknown;
}

const codeOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof Refused) return error.code;
      throw error;
    },
  );

/**
 * A group of ana and ben with 10 messages by ana after the two joins: head is 12. ben-1 is a phone, ben-2 a laptop. The rows
 * build on each other, in this order.
 */
export async function observeTable(world: World): Promise<Row[]> {
  const rows: Row[] = [];
  const row = (check: string, expected: unknown, observed: unknown) => rows.push({ check, expected, observed });

  const ana = await world.device('ana', 'ana-1');
  const phone = await world.device('ben', 'ben-1');
  let laptop = await world.device('ben', 'ben-2');
  const stranger = await world.device('cho', 'cho-1');
  const { id } = (await ana.createConv({ members: ['ben'] })).conv;
  for (let n = 1; n <= 10; n++) await ana.send(id, `message ${String(n)}`);
  const both = async <T>(look: (device: Actor) => Promise<T>): Promise<T[]> => [await look(phone), await look(laptop)];
  const unreadOnBoth = () => both(async (device) => (await device.conv(id)).unread);

  const held = await phone.catchUp(id);
  await phone.ack(id, held.at(-1)?.seq ?? 0);
  row(
    '09-delivery-per-device',
    { delivered: [12, 0], unread: [10, 10] },
    { delivered: await both(async (device) => (await device.conv(id)).delivered), unread: await unreadOnBoth() },
  );

  const answers = [(await phone.markRead(id, 8)).read, (await laptop.markRead(id, 5)).read];
  row('09-read-max-wins', { read: [8, 8], unread: [4, 4] }, { read: answers, unread: await unreadOnBoth() });

  row('09-read-does-not-fake-delivery', 0, (await laptop.conv(id)).delivered);

  await phone.send(id, 'from ben');
  const own = await phone.conv(id);
  row('09-own-messages-not-unread', { head: 13, unread: 4 }, { head: own.head, unread: own.unread });

  const before = await phone.conv(id);
  const ahead = await codeOf(phone.markRead(id, 10_000));
  row('09-read-ahead-rejected', ['CURSOR_AHEAD', before], [ahead, await phone.conv(id)]);

  const old = laptop;
  const { credential, installEpoch } = await laptop.reinstall('second install');
  laptop = laptop.as(credential);
  const staleAck = await codeOf(old.ack(id, 3));
  const startsAt = (await laptop.conv(id)).delivered;
  const synced = await laptop.catchUp(id);
  const acked = (await laptop.ack(id, 13)).delivered;
  row(
    '09-reinstall',
    { installEpoch: 1, staleAck: 'STALE_INSTALL', startsAt: 0, events: 12, first: 'MEMBER_INVITE', acked: 13, read: 8 },
    {
      installEpoch,
      staleAck,
      startsAt,
      events: synced.length,
      first: synced[0]?.contentType,
      acked,
      read: (await laptop.conv(id)).read,
    },
  );

  const kept = (await laptop.ack(id, 2)).delivered;
  const restored = synced.filter(({ seq }) => seq <= 2);
  const refetched = await laptop.catchUp(id, 2);
  row(
    '09-cursor-rollback',
    { delivered: 13, whole: synced.map(({ seq }) => seq) },
    { delivered: kept, whole: [...restored, ...refetched].map(({ seq }) => seq) },
  );

  // Two negative controls: what a wrong rule would say, from the very same state, beside the truth.
  const truth = (await phone.conv(id)).read;
  const delivered = await both(async (device) => (await device.conv(id)).delivered);
  row(
    '09-control-read-from-delivery',
    { wrong: 13, truth: 8, caught: true },
    { wrong: Math.max(...delivered), truth, caught: Math.max(...delivered) !== truth },
  );
  const reported = [8, 5];
  row(
    '09-control-lww-read',
    { wrong: 5, truth: 8, caught: true },
    { wrong: reported.at(-1), truth, caught: reported.at(-1) !== truth },
  );

  row('09-read-requires-membership', 'NOT_MEMBER', await codeOf(stranger.markRead(id, 1)));
  return rows;
}
