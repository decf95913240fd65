// Change numbers: drawn under the user's lock, one row change each, and told with the hint (C2, H5).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordingBus, type RecordingBus } from '../support/recording-bus.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let bus: RecordingBus;
let ana: Actor;
let ben: Actor;

beforeAll(async () => {
  bus = recordingBus();
  world = await startWorld({ overrides: { bus } });
  [ana, ben] = await Promise.all([world.device('ana'), world.device('ben')]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** What the user's row in this conversation, and the user, have drawn last. */
async function drawn(user: string, conv: string): Promise<{ row: number; user: number }> {
  const { rows } = await world.app.deps.store.pool.query<{ row: string; user: string }>(
    `SELECT m.change_no AS row, u.change_no AS user FROM members m JOIN users u ON u.id = m.user_id
      WHERE m.user_id = $1 AND m.conv_id = $2`,
    [user, conv],
  );
  return { row: Number(rows[0]?.row), user: Number(rows[0]?.user) };
}
const changesTold = (user: string, conv: string) =>
  bus.told(user, conv).map((hint) => ('change' in hint ? `${hint.kind} ${String(hint.change)}` : hint.kind));

test('[C2] each change of a user’s own state is told to that user with its number, to others without', async () => {
  const conv = (await ana.createConv({ members: ['ben'], joinPolicy: 'OPEN' })).conv.id;
  const steps: readonly [string, () => Promise<unknown>, string][] = [
    ['being invited', () => Promise.resolve(), 'message'],
    ['a mute', () => ben.setMuted(conv, true), 'conv'],
    ['a read', () => ben.markRead(conv, 1), 'read'],
    ['a read in a batch', () => ben.markReadMany([{ conv, seq: 2 }]), 'read'],
    ['leaving', () => ben.leave(conv), 'message'],
    ['joining', () => ben.join(conv), 'message'],
    ['a kick', () => ana.removeMember(conv, 'ben'), 'message'],
    ['being added', () => ana.addMembers(conv, ['ben']), 'message'],
    ['reading all', async () => ben.markAllRead((await ben.badge()).asOf), 'read'],
  ];
  let last = 0;
  for (const [step, act, kind] of steps) {
    await act();
    const { row, user } = await drawn('ben', conv);
    expect(row, step).toBeGreaterThan(last);
    expect(user, step).toBe(row);
    expect(changesTold('ben', conv).at(-1), step).toBe(`${kind} ${String(row)}`);
    last = row;
  }
  const anas = changesTold('ana', conv);
  expect(anas[0]).toBe(`message ${String((await drawn('ana', conv)).row)}`); // her own membership began
  expect(new Set(anas.slice(1))).toEqual(new Set(['message null'])); // ben’s is no change of hers
});

test('[C2] joining with visible history is one change, told as a membership and as a read', async () => {
  const conv = (await ana.createConv({ historyVisible: true, joinPolicy: 'OPEN' })).conv.id;
  await ana.send(conv, 'before');
  await ben.join(conv);
  const { row } = await drawn('ben', conv);
  expect(changesTold('ben', conv)).toEqual([`message ${String(row)}`, `read ${String(row)}`]);
});

test('[C2] a send that marks as read has one number, a message none', async () => {
  const conv = (await ana.createConv({ members: ['ben'] })).conv.id;
  await ben.send(conv, 'hello', { markReadUpTo: 2 });
  const { row } = await drawn('ben', conv);
  expect(changesTold('ben', conv).slice(1)).toEqual(['message null', `read ${String(row)}`]);
});

test('[C2] in any storm no two rows of a user bear one number, and none lies above the user’s', async () => {
  const users = ['ana', 'ben', 'cho'];
  const actors = await Promise.all(users.map((user) => world.device(user)));
  const convs = await Promise.all(
    Array.from({ length: 6 }, async (_, n) => {
      const input = { members: ['ben', 'cho'], joinPolicy: 'OPEN', historyVisible: n % 2 === 0 };
      return (await ana.createConv(input)).conv.id;
    }),
  );
  const direct = { type: 'DIRECT', members: ['cho'] };
  const acts = (actor: Actor, n: number, conv: string): Promise<unknown>[] => [
    actor.send(conv, 'x', { markReadUpTo: 1 + (n % 2) }),
    actor.markReadMany(convs.map((each) => ({ conv: each, seq: 1 + (n % 2) }))),
    actor.setMuted(conv, n % 2 === 0),
    n % 3 === 0 ? actor.leave(conv) : actor.join(conv),
    actor === actors[1] ? actor.createConv(direct) : Promise.resolve(),
  ];
  for (let n = 0; n < 6; n++) {
    // refusals are as good as answers here
    await Promise.allSettled(actors.flatMap((actor) => acts(actor, n, convs[n] ?? '')));
    const { rows } = await world.app.deps.store.pool.query(
      `SELECT user_id FROM members JOIN users u ON u.id = user_id
        GROUP BY user_id, members.change_no, u.change_no HAVING count(*) > 1 OR members.change_no > u.change_no`,
    );
    expect(rows).toEqual([]);
  }
  const told = users.map((user) => convs.flatMap((conv) => changesTold(user, conv)).filter((t) => !t.endsWith('null')));
  for (const numbers of told) {
    // a join with visible history is told twice, see above
    const perKind = numbers.filter((text) => !text.startsWith('read'));
    expect(new Set(perKind).size).toBe(perKind.length);
  }
});
