// Making conversations, listing them, and the viewer's own settings of them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dump } from '../support/dump.js';
import { outcomeOf, refusalOf, tally } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, benLaptop: Actor;

const everything = () => dump(world.app.deps.store.pool);
const times = <T>(n: number, make: (n: number) => T): T[] => Array.from({ length: n }, (_, index) => make(index));
const bad = { code: 'BAD_USER_INPUT', retryable: false };
/** Users of this test only, each spoken for by the service key. */
async function newUsers(n: number): Promise<string[]> {
  const ids = times(n, () => fresh('user'));
  await world.users(...ids);
  return ids;
}
const membersOf = async (actor: Actor, conv: string) => {
  const document = 'query ($id: ID!) { conv(id: $id) { members(first: 200) { nodes { role user { id } } } } }';
  type Answer = { conv: { members: { nodes: { role: string; user: { id: string } }[] } } };
  const { conv: found } = await actor.ask<Answer>(document, { id: conv });
  return Object.fromEntries(found.members.nodes.map(({ role, user }) => [user.id, role]));
};

beforeAll(async () => {
  world = await startWorld();
  [ana, ben, benLaptop] = [await world.device('ana'), await world.device('ben'), await world.device('ben')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

describe('making a group', () => {
  test('[M6] [M7] a group of ana and ben with 10 messages has head 12, and ben sees 2 to 12', async () => {
    const { conv, duplicate } = await ana.createConv({ title: 'The two', members: ['ben'] });
    expect(duplicate).toBe(false);
    expect(conv).toMatchObject({
      type: 'GROUP',
      title: 'The two',
      epoch: 1,
      head: 2,
      minSeq: 1,
      read: 0,
      unread: 0,
      joined: true,
      myRole: 'OWNER',
    });
    for (let n = 0; n < 10; n++) await ana.send(conv.id, `m${String(n)}`);
    const log = await ana.catchUp(conv.id);
    expect(log.slice(0, 2)).toMatchObject([
      { seq: 1, kind: 'MEMBERSHIP', contentType: 'GROUP_CREATE', sender: { id: 'ana' }, content: { users: ['ana'] } },
      { seq: 2, kind: 'MEMBERSHIP', contentType: 'MEMBER_INVITE', sender: { id: 'ana' }, content: { users: ['ben'] } },
    ]);
    expect((await ben.catchUp(conv.id)).map(({ seq }) => seq)).toEqual(times(11, (n) => n + 2));
    expect(await ben.conv(conv.id)).toMatchObject({ head: 12, unread: 10, myRole: 'MEMBER' });
    expect(await membersOf(ben, conv.id)).toEqual({ ana: 'OWNER', ben: 'MEMBER' });
  });

  test('[M6] alone it has one event; with 50 others two, and all of them see the second first', async () => {
    expect((await ana.createConv({ members: ['ana'] })).conv.head).toBe(1);
    const users = await newUsers(50);
    const { conv } = await ana.createConv({ members: [...users, 'ana', ...users] });
    expect(conv.head).toBe(2);
    const firsts = await Promise.all(
      users.map(async (user) => (await world.asUser(user).catchUp(conv.id)).map(({ seq }) => seq)),
    );
    expect(firsts).toEqual(users.map(() => [2]));
    expect(Object.keys(await membersOf(ana, conv.id))).toHaveLength(51);
  });

  test('[H1] everyone in it is told, on every device', async () => {
    const document = 'subscription { hints { ... on MessageHint { contentType seq conv { id title unread } } } }';
    const live = await Promise.all(
      [ana, ben, benLaptop].map(({ credential }) => world.app.subscribe(credential, document)),
    );
    for (const hints of live) await hints.next();
    const { conv } = await ana.createConv({ title: 'News', members: ['ben'] });
    for (const hints of live) {
      const told = { contentType: 'MEMBER_INVITE', seq: 2, conv: { id: conv.id, title: 'News', unread: 0 } };
      expect((await hints.next()).data).toEqual({ hints: told });
      await hints.socket.close();
    }
  });

  test('[M6] [I6] the service key makes one for an owner it names; nobody else may name one', async () => {
    const { conv } = await world.service.createConv({ owner: 'ben', members: ['cho'] });
    expect(await membersOf(ben, conv.id)).toEqual({ ben: 'OWNER', cho: 'MEMBER' });
    expect(await ben.catchUp(conv.id)).toMatchObject([
      { contentType: 'GROUP_CREATE', sender: null, via: 'SERVICE', content: { users: ['ben'] } },
      { contentType: 'MEMBER_INVITE', sender: null, via: 'SERVICE', content: { users: ['cho'] } },
    ]);
    const before = await everything();
    expect((await refusalOf(world.service.createConv({ members: ['cho'] }))).extensions).toEqual(bad);
    expect((await refusalOf(world.service.createConv({ owner: '', members: ['cho'] }))).extensions).toEqual(bad);
    expect((await refusalOf(world.service.createConv({ owner: 'nobody' }))).extensions).toEqual(bad);
    for (const actor of [ana, world.asUser('ana')]) {
      for (const owner of ['ana', 'ben'])
        expect((await refusalOf(actor.createConv({ owner }))).extensions).toEqual(bad);
    }
    expect(await everything()).toEqual(before);
  });

  test('[P1] what cannot be made, and nothing is', async () => {
    const before = await everything();
    const wrong: [Record<string, unknown>, Record<string, unknown>][] = [
      [{ members: ['nobody'] }, bad],
      [{ members: ['ben', 'nobody', 'cho'] }, bad],
      [{ members: [''] }, bad],
      [{ members: ['u'.repeat(65)] }, { ...bad, limit: 64 }],
      [{ members: times(201, (n) => `u${String(n)}`) }, { ...bad, limit: 200 }],
      [{ title: '' }, bad],
      [{ title: 't'.repeat(65) }, { ...bad, limit: 64 }],
      [{ title: 'a\nb' }, bad],
      [{ clientId: '' }, bad],
      [{ clientId: 'k'.repeat(65) }, { ...bad, limit: 64 }],
      [{ type: 'ROOM' }, bad],
      [{ joinPolicy: 'MAYBE' }, bad],
      [{ extra: 1 }, bad],
      [{ type: 'DIRECT', members: [] }, bad],
      [{ type: 'DIRECT', members: ['ana'] }, bad],
      [{ type: 'DIRECT', members: ['ben', 'cho'] }, bad],
      [{ type: 'DIRECT', members: ['nobody'] }, bad],
      [{ type: 'DIRECT', members: ['ben'], title: 'x' }, bad],
      [{ type: 'DIRECT', members: ['ben'], historyVisible: true }, bad],
      [{ type: 'DIRECT', members: ['ben'], joinPolicy: 'OPEN' }, bad],
    ];
    for (const [input, extensions] of wrong)
      expect((await refusalOf(ana.createConv(input))).extensions, JSON.stringify(input)).toEqual(extensions);
    expect(await everything()).toEqual(before);
  });

  test('[P1] a title of 64 characters, astral ones too', async () => {
    for (const title of ['t'.repeat(64), '🌊'.repeat(64), 't'])
      expect((await ana.createConv({ title })).conv.title).toBe(title);
  });
});

describe('one clientId, one conversation', () => {
  test('[L3] 20 at once with one clientId, members in any order: one conversation, 20 equal answers', async () => {
    const clientId = fresh();
    const input = (n: number) => ({
      clientId,
      title: 'one',
      members: n % 2 ? ['ben', 'cho'] : ['cho', 'ben', 'cho'],
      historyVisible: n % 3 ? null : false,
    });
    const answers = await Promise.all(times(20, (n) => ana.createConv(input(n))));
    expect(tally(answers.map(({ duplicate }) => duplicate))).toEqual({ false: 1, true: 19 });
    for (const { conv } of answers) expect(conv).toEqual(answers[0]?.conv);
    expect(answers[0]?.conv.head).toBe(2);
  });

  test('[L3] a repeat answers the same conversation for ever; other content is a conflict and makes nothing', async () => {
    const input = { clientId: fresh(), title: 'a', members: ['ben'], joinPolicy: 'INVITE' };
    const { conv } = await ana.createConv(input);
    await ana.removeMember(conv.id, 'ben');
    expect(await ana.createConv(input)).toMatchObject({ duplicate: true, conv: { id: conv.id, head: 3 } });
    const before = await everything();
    for (const other of [
      { title: 'b' },
      { members: ['cho'] },
      { members: [] },
      { historyVisible: true },
      { joinPolicy: 'OPEN' },
    ]) {
      expect((await refusalOf(ana.createConv({ ...input, ...other }))).extensions).toEqual({
        code: 'IDEMPOTENCY_CONFLICT',
        retryable: false,
      });
    }
    expect(await outcomeOf(ana.createConv({ clientId: input.clientId, type: 'DIRECT', members: ['ben'] }))).toBe(
      'IDEMPOTENCY_CONFLICT',
    );
    expect(await everything()).toEqual(before);
    expect((await ben.createConv(input)).duplicate).toBe(false); // the key is ben's own
  });

  test('[L3] one clientId with two contents at once: one is made, the other is a conflict', async () => {
    for (let round = 0; round < 5; round++) {
      const clientId = fresh();
      const codes = await Promise.all(
        ['a', 'b', 'a', 'b'].map((title) => outcomeOf(ana.createConv({ clientId, title }))),
      );
      expect(tally(codes)).toEqual({ ok: 2, IDEMPOTENCY_CONFLICT: 2 });
    }
  });
});

describe('a direct conversation', () => {
  test('[M6] [M7] one per pair under concurrency, whoever opens first; empty, both MEMBER, both from 1', async () => {
    const [one = '', two = ''] = await newUsers(2);
    const [first, second] = [world.asUser(one), world.asUser(two)];
    const opening = times(20, (n) =>
      (n % 2 ? first : second).createConv({ type: 'DIRECT', members: [n % 2 ? two : one] }),
    );
    const byService = world.service.createConv({ type: 'DIRECT', owner: two, members: [one] });
    const answers = await Promise.all([...opening, byService]);
    const [id = '', ...more] = new Set(answers.map(({ conv }) => conv.id));
    expect(more).toEqual([]);
    expect(tally(answers.map(({ duplicate }) => duplicate))).toEqual({ false: 1, true: 20 });
    expect(await first.conv(id)).toMatchObject({
      type: 'DIRECT',
      title: null,
      head: 0,
      unread: 0,
      joined: true,
      myRole: 'MEMBER',
    });
    await first.send(id, 'hi');
    expect((await second.catchUp(id)).map(({ seq }) => seq)).toEqual([1]);
    expect(await membersOf(second, id)).toEqual({ [one]: 'MEMBER', [two]: 'MEMBER' });
    const { conv } = await first.ask<{ conv: unknown }>(
      'query ($id: ID!) { conv(id: $id) { peer { id } lastEvent { seq } } }',
      { id },
    );
    expect(conv).toEqual({ peer: { id: two }, lastEvent: { seq: 1 } });
  });

  test('[L3] a key that opened it is a repeat, one that found it too, and both conflict with other content', async () => {
    const [other = ''] = await newUsers(1);
    const keys = [fresh(), fresh()];
    const open = (clientId: string | undefined) => ana.createConv({ clientId, type: 'DIRECT', members: [other] });
    const [made, found] = [await open(keys[0]), await open(keys[1])];
    expect([made.duplicate, found.duplicate]).toEqual([false, true]);
    for (const clientId of keys) {
      expect(await open(clientId)).toMatchObject({ duplicate: true, conv: { id: made.conv.id } });
      expect(await outcomeOf(ana.createConv({ clientId, type: 'DIRECT', members: ['cho'] }))).toBe(
        'IDEMPOTENCY_CONFLICT',
      );
    }
  });

  test('[H9] opening one tells all devices of both, and finding it tells nobody', async () => {
    const [other = ''] = await newUsers(1);
    const device = await world.device(other);
    const document = `subscription { hints { __typename ... on ConvHint { contentType conversationType originDevice
      conv { id peer { id } } } ... on MessageHint { seq } } }`;
    const live = await Promise.all(
      [benLaptop, device].map(({ credential }) => world.app.subscribe(credential, document)),
    );
    for (const hints of live) await hints.next();
    const { conv } = await ben.createConv({ type: 'DIRECT', members: [other] });
    await device.createConv({ type: 'DIRECT', members: ['ben'] });
    await device.send(conv.id, 'hi');
    for (const [index, hints] of live.entries()) {
      const about = {
        conversationType: 'DIRECT',
        contentType: 'DIRECT_CREATE',
        conv: { id: conv.id, peer: { id: index ? 'ben' : other } },
      };
      expect((await hints.next()).data).toMatchObject({ hints: { __typename: 'ConvHint', ...about } });
      expect((await hints.next()).data).toMatchObject({ hints: { __typename: 'MessageHint', seq: 1 } });
      await hints.socket.close();
    }
  });
});
