// Paging the list of conversations, and what a restored database does to positions.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendMany } from '../support/big-log.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor;

beforeAll(async () => {
  world = await startWorld();
  ana = await world.device('ana');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** A new user with a device and `count` conversations that ana has written in, oldest activity first. */
async function reader(count: number): Promise<{ device: Actor; user: string; ids: string[] }> {
  const user = fresh('reader-');
  await world.users(user);
  const device = await world.device(user);
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const { id } = (await ana.createConv({ members: [user] })).conv;
    ids.push(id);
    await sendMany(world.app.deps.store.pool, id, 'ana', 3); // 3..5
    await world.app.deps.store.pool.query(
      'UPDATE conversations SET head_at = now() - $2 * interval $$1 minute$$ WHERE id = $1',
      [id, count - n],
    );
  }
  return { device, user, ids };
}

async function walk(
  device: Actor,
  args: Readonly<Record<string, unknown>>,
  between: (page: number) => Promise<unknown> = () => Promise.resolve(),
) {
  const seen: string[] = [];
  let page = 0;
  for (let after: string | null = null; ;) {
    const { nodes, pageInfo }: Awaited<ReturnType<Actor['convs']>> = await device.convs({ ...args, after });
    seen.push(...nodes.map(({ id }) => id));
    if (!pageInfo.hasNextPage) return seen;
    after = pageInfo.endCursor;
    await between(++page);
  }
}

describe('paging convs', () => {
  test('[U3] newest activity first; what does not move is seen exactly once while others move up', async () => {
    for (const first of [1, 2, 3]) {
      const { device, ids } = await reader(8);
      expect(await walk(device, { first })).toEqual(ids.toReversed());
      const moved = new Set<string>();
      const seen = await walk(device, { first }, async (page) => {
        const id = ids[(page * 3) % ids.length] ?? '';
        moved.add(id);
        await ana.send(id, 'up');
      });
      const still = ids.filter((id) => !moved.has(id));
      expect(seen.filter((id) => still.includes(id))).toEqual(still.toReversed());
      expect((await device.convs({ first: 1 })).nodes[0]?.id).toSatisfy((id: string) => moved.has(id));
    }
  });

  test('[U3] conversations of one and the same moment are told apart by id', async () => {
    const { device, ids } = await reader(6);
    await world.app.deps.store.pool.query(
      `UPDATE conversations SET head_at = '2026-01-01' WHERE id = ANY ($1::uuid[])`,
      [ids],
    );
    for (const first of [1, 2, 4, 6]) expect(await walk(device, { first })).toEqual(ids.toSorted().toReversed());
  });

  test('[U3] orderBy ID is a stable walk, whatever moves', async () => {
    const { device, ids } = await reader(7);
    const seen = await walk(device, { first: 2, orderBy: 'ID' }, (page) => ana.send(ids[page] ?? '', 'up'));
    expect(seen).toEqual(ids.toSorted());
  });

  test('[U3] [D1] lagging: what this device does not hold; unreadOnly: what the user has not read', async () => {
    const { device, user, ids } = await reader(4);
    const [held = '', both = '', readAll = '', behind = ''] = ids;
    const laptop = await world.device(user);
    for (const id of [held, both]) await device.ack(id, 5);
    for (const id of [both, readAll]) await device.markRead(id, 5);
    await device.ack(behind, 4);
    const list = (actor: Actor, args: Readonly<Record<string, unknown>>) => walk(actor, { first: 1, ...args });
    expect(await list(device, { lagging: true })).toEqual([behind, readAll]);
    expect(await list(laptop, { lagging: true })).toEqual(ids.toReversed());
    expect(await list(device, { unreadOnly: true })).toEqual([behind, held]);
    expect(await list(device, { lagging: true, unreadOnly: true, orderBy: 'ID' })).toEqual([behind]);
    await ana.send(both, 'more');
    expect(await list(device, { lagging: true })).toEqual([both, behind, readAll]);
  });

  test('[M3] includeLeft: a conversation that was left is listed on request, with its activity frozen at leaving', async () => {
    const { device, user, ids } = await reader(3);
    const [left = '', ...rest] = ids;
    await ana.removeMember(left, user); // seq 6, the newest activity
    const args = { first: 2, includeLeft: true };
    expect(await walk(device, { first: 2 })).toEqual(rest.toReversed());
    expect(await walk(device, args)).toEqual([left, ...rest.toReversed()]);
    await ana.send(rest[0] ?? '', 'newer');
    await ana.send(left, 'unseen');
    expect(await walk(device, args)).toEqual([rest[0], left, rest[1]]);
    expect((await device.convs(args)).nodes[1]).toMatchObject({
      joined: false,
      head: 6,
      lastEvent: { contentType: 'MEMBER_KICK' },
    });
  });

  test.each(['nonsense', '', 'MTIz', '"'])('[P1] the cursor %o is BAD_USER_INPUT', async (after) => {
    await expect(ana.convs({ after })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });
});

test('[L8] [S3] a new generation: every epoch rises, old ones are reset, no position above its head', async () => {
  const { device, user, ids } = await reader(2);
  const [ahead = '', fine = ''] = ids;
  const left = (await reader(1)).ids[0] ?? '';
  await ana.addMembers(left, [user]);
  await ana.removeMember(left, user); // the end of the period: 7
  for (const id of ids) await device.ack(id, 4);
  await device.markRead(fine, 4);
  // positions of the time after the backup, as devices told them to a database that has forgotten the messages
  const { store } = world.app.deps;
  await store.pool.query('UPDATE members SET read_seq = 50, read_no = 40 WHERE conv_id = $1 AND user_id = $2', [
    ahead,
    user,
  ]);
  await store.pool.query('UPDATE device_cursors SET delivered_seq = 50 WHERE conv_id = $1', [ahead]);
  const before = await store.generation.current();
  await store.generation.begin();
  expect(await store.generation.current()).not.toBe(before);
  expect(await device.conv(ahead)).toMatchObject({ epoch: 2, head: 5, read: 5, delivered: 5, unread: 0 });
  expect(await device.conv(fine)).toMatchObject({ epoch: 2, head: 5, read: 4, delivered: 4, unread: 1 });
  expect(await device.conv(left)).toMatchObject({ epoch: 2, head: 7, joined: false });
  const { items } = await device.sync([
    { conv: ahead, after: 5, epoch: 1 },
    { conv: ahead, after: 5, epoch: 2 },
    { conv: ahead, after: 50 },
    { conv: fine, after: 0, epoch: 1 },
  ]);
  expect(items.map(({ reset }) => reset)).toEqual([
    { reason: 'EPOCH', start: 0 },
    null,
    { reason: 'AHEAD', start: 0 },
    null,
  ]);
  await ana.send(ahead, 'after the restore');
  expect(await device.conv(ahead)).toMatchObject({ head: 6, unread: 1 });
});
