// The list of conversations, and the viewer's own settings of them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, benLaptop: Actor, cho: Actor;

const times = <T>(n: number, make: (n: number) => T): T[] => Array.from({ length: n }, (_, index) => make(index));
/** Users of this test only, each spoken for by the service key. */
async function newUsers(n: number): Promise<string[]> {
  const ids = times(n, () => fresh('user'));
  await world.users(...ids);
  return ids;
}
beforeAll(async () => {
  world = await startWorld();
  [ana, ben, benLaptop, cho] = [
    await world.device('ana'),
    await world.device('ben'),
    await world.device('ben'),
    await world.device('cho'),
  ];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

describe('settings', () => {
  test('[H9] [U5] muting tells all own devices once, nobody else, and moves the unread to the other side of the badge', async () => {
    const { conv } = await ana.createConv({ members: ['ben'] });
    await ana.send(conv.id, 'hi');
    const at = await ben.badge();
    const document = `subscription { hints { __typename ... on ConvHint { contentType conversationType originDevice conv { id muted } }
      ... on MessageHint { seq } } }`;
    const [mine, laptop, hers] = await Promise.all(
      [ben, benLaptop, ana].map(({ credential }) => world.app.subscribe(credential, document)),
    );
    for (const hints of [mine, laptop, hers]) await hints?.next();
    expect(await ben.setMuted(conv.id, true)).toMatchObject({ id: conv.id, muted: true, unread: 1 });
    await benLaptop.setMuted(conv.id, true); // a repeat is told to nobody
    expect(await ben.badge()).toMatchObject({
      unread: at.unread - 1,
      mutedUnread: at.mutedUnread + 1,
      convs: at.convs - 1,
    });
    await ana.send(conv.id, 'still there');
    const originDevice = ben.credential.slice(3).split('.')[0];
    for (const hints of [mine, laptop]) {
      const told = {
        __typename: 'ConvHint',
        contentType: 'MEMBER_SETTING_UPDATE',
        conversationType: 'GROUP',
        originDevice,
      };
      expect((await hints?.next())?.data).toEqual({ hints: { ...told, conv: { id: conv.id, muted: true } } });
      expect((await hints?.next())?.data).toEqual({ hints: { __typename: 'MessageHint', seq: 4 } });
      await hints?.socket.close();
    }
    expect((await hers?.next())?.data).toEqual({ hints: { __typename: 'MessageHint', seq: 4 } });
    await hers?.socket.close();
    expect(await benLaptop.setMuted(conv.id, false)).toMatchObject({ muted: false });
    expect(await ben.badge()).toMatchObject({ unread: at.unread + 1, mutedUnread: at.mutedUnread });
    expect(await ana.conv(conv.id)).toMatchObject({ muted: false });
  });
});

describe('convs', () => {
  test('[U3] by activity, newest first, each with its last visible event; what was left is behind includeLeft', async () => {
    const [user = ''] = await newUsers(1);
    const me = await world.device(user);
    const ids: string[] = [];
    for (const title of ['a', 'b', 'c']) ids.push((await me.createConv({ title, members: ['ben', 'cho'] })).conv.id);
    const [a = '', b = '', c = ''] = ids;
    await ben.send(a, 'newest');
    await cho.send(b, 'then this');
    await me.removeMember(b, 'ben');
    await cho.send(b, 'not for ben');
    const titles = async (actor: Actor, args = {}) =>
      (await actor.convs(args)).nodes.filter(({ id }) => ids.includes(id)).map(({ title }) => title);
    expect(await titles(me)).toEqual(['b', 'a', 'c']);
    expect(await titles(ben)).toEqual(['a', 'c']);
    expect(await titles(ben, { includeLeft: true })).toEqual(['b', 'a', 'c']);
    expect(await titles(me, { unreadOnly: true })).toEqual(['b', 'a']);
    await me.ack(b, 5);
    expect(await titles(me, { lagging: true })).toEqual(['a', 'c']);
    const left = (await ben.convs({ includeLeft: true })).nodes.find(({ id }) => id === b);
    expect(left).toMatchObject({
      joined: false,
      myRole: null,
      head: 4,
      unread: 1,
      lastEvent: { seq: 4, contentType: 'MEMBER_KICK' },
    });
    const seen: string[] = [];
    for (let after: string | null = null; ;) {
      const page: Awaited<ReturnType<Actor['convs']>> = await me.convs({ first: 2, after, orderBy: 'ID' });
      seen.push(...page.nodes.map(({ id }) => id));
      if (!page.pageInfo.hasNextPage) break;
      after = page.pageInfo.endCursor;
    }
    expect(seen).toEqual([a, b, c].toSorted());
  });
});
