// Who sees what of a log: periods, the event that ends one, visible history, former members.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { outcomeOf } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, cho: Actor, choLaptop: Actor;
/** Of ana (owner) and ben; cho is outside. Head 2. */
let conv: string;

const sql = (text: string, ...values: unknown[]) => world.app.deps.store.pool.query(text, values);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);
const say = async (n: number) => {
  for (let i = 0; i < n; i++) await ana.send(conv, `m${String(i)}`);
};
/** The seqs that each API shows; all of them must show the same. */
async function seenBy(actor: Actor): Promise<number[]> {
  const synced = (await actor.catchUp(conv, 0, 2)).map(({ seq }) => seq);
  const paged: number[] = [];
  for (let before: string | null = null; ;) {
    const page: Awaited<ReturnType<Actor['history']>> = await actor.history(conv, { last: 2, before });
    paged.unshift(...page.nodes.map(({ seq }) => seq));
    if (!page.pageInfo.hasPreviousPage) break;
    before = page.pageInfo.startCursor;
  }
  expect(paged).toEqual(synced);
  const found = (await actor.convs({ includeLeft: true, first: 1_000 })).nodes.find(({ id }) => id === conv);
  expect(found).toMatchObject({ head: synced.at(-1), lastEvent: { seq: synced.at(-1) } });
  expect((await actor.audit(conv)).seqs).toHaveLength(found?.unread ?? -1);
  for (const seq of (await actor.audit(conv)).seqs) expect(synced).toContain(seq);
  return synced;
}

beforeAll(async () => {
  world = await startWorld();
  [ana, ben, cho, choLaptop] = [
    await world.device('ana'),
    await world.device('ben'),
    await world.device('cho'),
    await world.device('cho'),
  ];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
});

describe('periods', () => {
  test('[M1] [M2] ben leaves at 3, 4 and 5 are sent, ben comes back: 4 and 5 are never shown, what was before is', async () => {
    await ben.leave(conv); // 3
    await say(2);
    await ana.addMembers(conv, ['ben']); // 6
    await say(1); // 7
    expect(await seenBy(ben)).toEqual([2, 3, 6, 7]);
    expect(await ben.conv(conv)).toMatchObject({ unread: 1, head: 7 });
  });

  test('[M1] [M2] [U1] joining a group with 100 messages: nothing unread; the next message makes one', async () => {
    await say(100);
    await ana.addMembers(conv, ['cho']); // 103
    expect(await cho.conv(conv)).toMatchObject({ head: 103, unread: 0, read: 0 });
    await say(1);
    expect(await cho.conv(conv)).toMatchObject({ head: 104, unread: 1 });
    expect(await seenBy(cho)).toEqual([103, 104]);
  });

  test('[M1] periods 5 to 10 and from 20: exactly these, and history pages across the gap', async () => {
    await say(2);
    await ana.addMembers(conv, ['cho']); // 5
    await say(4);
    await ana.removeMember(conv, 'cho'); // 10
    await say(9);
    await ana.addMembers(conv, ['cho']); // 20
    await say(3);
    expect(await seenBy(cho)).toEqual([...range(5, 10), ...range(20, 23)]);
    expect(await cho.conv(conv)).toMatchObject({ unread: 7 });
    expect(await cho.markRead(conv, 15)).toMatchObject({ read: 15, unread: 3 });
    const { nodes } = await cho.history(conv, { first: 200, after: '8' });
    expect(nodes.map(({ seq }) => seq)).toEqual([9, 10, 20, 21, 22, 23]);
  });

  test('[M2] [M3] cho is kicked while subscribed: the kick is the last thing that cho gets', async () => {
    await ana.addMembers(conv, ['cho']); // 3
    const document =
      'subscription { hints { __typename ... on MessageHint { seq contentType event { seq } conv { id head unread joined } } } }';
    const live = await Promise.all([cho, choLaptop].map(({ credential }) => world.app.subscribe(credential, document)));
    for (const hints of live) await hints.next();
    await say(1); // 4
    await ana.removeMember(conv, 'cho'); // 5
    await say(3);
    expect(await outcomeOf(cho.send(conv, 'hello?'))).toBe('NOT_MEMBER');
    const { conv: other } = await cho.createConv({}); // its hint comes after all that could have come before
    for (const hints of live) {
      const last = await hints.until(({ data }) => (data?.['hints'] as { conv: { id: string } }).conv.id === other.id);
      const told = hints.all.slice(1, -1).map(({ data }) => data?.['hints']);
      expect(last.data).toMatchObject({ hints: { contentType: 'GROUP_CREATE' } });
      expect(told.at(-1)).toMatchObject({
        seq: 5,
        contentType: 'MEMBER_KICK',
        event: { seq: 5 },
        conv: { head: 5, unread: 1, joined: false },
      });
      expect(told.map((hint) => (hint as { seq: number }).seq).every((seq) => seq <= 5)).toBe(true);
      await hints.socket.close();
    }
    expect(await seenBy(cho)).toEqual([3, 4, 5]);
  });
});

describe('visible history', () => {
  const setVisible = (visible: boolean) =>
    sql('UPDATE conversations SET history_visible = $2 WHERE id = $1', conv, visible);

  test('[M2] [R4] who joins sees all of it and has nothing unread; readChanged tells their devices', async () => {
    const hints = await world.app.subscribe(
      cho.credential,
      'subscription { readChanged { conv { id } read unread head } }',
    );
    await hints.next();
    await setVisible(true);
    await say(3);
    await ana.addMembers(conv, ['cho']); // 6
    expect((await hints.next()).data).toEqual({ readChanged: { conv: { id: conv }, read: 5, unread: 0, head: 6 } });
    await hints.socket.close();
    expect(await cho.conv(conv)).toMatchObject({ read: 5, unread: 0, head: 6 });
    await say(1);
    expect(await cho.conv(conv)).toMatchObject({ unread: 1 });
    expect(await seenBy(cho)).toEqual(range(1, 7));
  });

  test('[M2] who comes back sees the gap too, and it stays read', async () => {
    await ana.addMembers(conv, ['cho']); // 3
    await say(1);
    await cho.leave(conv); // 5
    await say(2);
    await setVisible(true);
    await ana.addMembers(conv, ['cho']); // 8
    await say(1);
    expect(await seenBy(cho)).toEqual(range(1, 9));
    expect(await cho.conv(conv)).toMatchObject({ read: 7, unread: 1 });
  });

  test('[M2] a later switch changes no period that is there', async () => {
    await say(1);
    await ana.addMembers(conv, ['cho']); // 4
    await setVisible(true);
    await say(1);
    expect(await seenBy(cho)).toEqual([4, 5]);
    expect(await seenBy(ben)).toEqual(range(2, 5));
    const guest = fresh('guest');
    await world.users(guest);
    await ana.addMembers(conv, [guest]); // 6
    await setVisible(false);
    expect(await seenBy(world.asUser(guest))).toEqual(range(1, 6));
    await ana.removeMember(conv, 'cho'); // 7
    await ana.addMembers(conv, ['cho']); // 8
    expect(await seenBy(cho)).toEqual([4, 5, 6, 7, 8]);
  });
});

describe('a former member', () => {
  test('[M3] [D2] [R1] syncs, pages, acks, reads and mutes; learns nothing of what comes after; own devices are told', async () => {
    await ana.addMembers(conv, ['cho']); // 3
    await say(3); // 6
    await cho.leave(conv); // 7
    await say(5); // 12
    const document = `subscription { hints { __typename ... on MessageHint { seq } ... on ReadHint { read unread head conv { id head } }
      ... on ConvHint { contentType conv { id muted head } } } }`;
    const laptop = await world.app.subscribe(choLaptop.credential, document);
    await laptop.next();
    expect(await seenBy(cho)).toEqual(range(3, 7));
    expect(await cho.conv(conv)).toMatchObject({ head: 7, unread: 3, joined: false, myRole: null });
    expect((await cho.badge()).unread).toBe((await cho.convs()).nodes.reduce((sum, { unread }) => sum + unread, 0));
    expect(await cho.ack(conv, 999)).toMatchObject({ delivered: 7, head: 7 });
    expect(await cho.markRead(conv, 5)).toMatchObject({ read: 5, unread: 1, head: 7 });
    expect(await cho.markRead(conv, 999)).toMatchObject({ read: 7, unread: 0, head: 7 });
    expect(await cho.setMuted(conv, true)).toMatchObject({ muted: true });
    const refused = await Promise.all(
      [
        cho.send(conv, 'x'),
        cho.recall(conv, 5),
        cho.addMembers(conv, ['ben']),
        cho.removeMember(conv, 'ben'),
        cho.join(conv),
      ].map(outcomeOf),
    );
    expect(refused).toEqual(refused.map(() => 'NOT_MEMBER'));
    const told = [await laptop.next(), await laptop.next(), await laptop.next()].map(({ data }) => data?.['hints']);
    expect(told).toEqual([
      { __typename: 'ReadHint', read: 5, unread: 1, head: 7, conv: { id: conv, head: 7 } },
      { __typename: 'ReadHint', read: 7, unread: 0, head: 7, conv: { id: conv, head: 7 } },
      { __typename: 'ConvHint', contentType: 'MEMBER_SETTING_UPDATE', conv: { id: conv, muted: true, head: 7 } },
    ]);
    await laptop.socket.close();
    const { conv: room } = await cho.ask<{ conv: unknown }>(
      'query ($id: ID!) { conv(id: $id) { members { nodes { user { id } } } } }',
      { id: conv },
    );
    expect(room).toEqual({ members: { nodes: [] } });
  });
});

describe('at once', () => {
  test('[M5] [M1] adding, kicking, leaving and joining one user in parallel: periods alternate, one at most is open', async () => {
    conv = (await ana.createConv({ members: ['ben'], joinPolicy: 'OPEN' })).conv.id;
    const moves = [
      () => ana.addMembers(conv, ['cho']),
      () => ana.removeMember(conv, 'cho'),
      () => cho.join(conv),
      () => choLaptop.leave(conv),
      () => ana.send(conv, 'x'),
    ];
    for (let round = 0; round < 3; round++) {
      const codes = await Promise.all(
        range(0, 29).map((n) => outcomeOf(moves[n % moves.length]?.() ?? Promise.resolve())),
      );
      expect(codes.filter((code) => code !== 'ok' && code !== 'NOT_MEMBER')).toEqual([]);
    }
    const log = await ana.catchUp(conv);
    expect(log.map(({ seq }) => seq)).toEqual(range(1, log.length));
    const turns = log.filter(({ content }) => Array.isArray(content?.['users']) && content['users'].includes('cho'));
    const expected: number[] = [];
    turns.forEach(({ seq, contentType }, index) => {
      expect(['MEMBER_INVITE', 'MEMBER_ENTER'].includes(contentType)).toBe(index % 2 === 0);
      if (index % 2 === 0) expected.push(...range(seq, turns[index + 1]?.seq ?? log.length));
    });
    expect(await seenBy(cho)).toEqual(expected);
    const { rows } = await sql('SELECT member_count AS n FROM conversations WHERE id = $1', conv);
    expect(rows).toEqual([{ n: turns.length % 2 ? 3 : 2 }]);
  });

  test('[M5] [M6] the same users added by two at once: each gets one invitation', async () => {
    const users = range(1, 20).map(() => fresh('new'));
    await world.users(...users);
    await sql(`UPDATE members SET role = 'ADMIN' WHERE conv_id = $1 AND user_id = 'ben'`, conv);
    await Promise.all([
      ana.addMembers(conv, users),
      ben.addMembers(conv, users.toReversed()),
      ana.addMembers(conv, users.slice(5)),
    ]);
    const invited = (await ana.catchUp(conv, 2)).flatMap(({ content }) => content?.['users'] as string[]);
    expect(invited.toSorted()).toEqual(users.toSorted());
  });
});
