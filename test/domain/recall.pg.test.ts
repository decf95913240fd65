// Recalling: what stays, what nobody can see any more, and who may.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/config.js';
import { FailpointGate } from '../model/failpoint-gate.js';
import { dump } from '../support/dump.js';
import { outcomeOf, refusalOf } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

const gate = new FailpointGate();
const recallWindowMs = 60_000;
let world: World;
let ana: Actor, ben: Actor, benLaptop: Actor, cho: Actor;
/** Of ana (owner) and ben, with cho as a former member; head 4. */
let conv: string;

const sql = (text: string, ...values: unknown[]) => world.app.deps.store.pool.query(text, values);
/** As if all of the log had been written earlier. */
const age = (byMs: number) => sql(`UPDATE events SET at = at - $2 * interval '1 ms' WHERE conv_id = $1`, conv, byMs);
const setRole = (user: string, role: string) =>
  sql('UPDATE members SET role = $3::role WHERE conv_id = $1 AND user_id = $2', conv, user, role);
const everything = () => dump(world.app.deps.store.pool);

beforeAll(async () => {
  const limits = { ...defaultLimits, recallWindowMs };
  world = await startWorld({ config: { limits }, overrides: { failpoint: gate.failpoint } });
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
beforeEach(async () => {
  conv = (await ana.createConv({ members: ['ben', 'cho'] })).conv.id;
  await ben.send(conv, 'before cho went'); // 3
  await cho.leave(conv); // 4
});

describe('what a recall does', () => {
  test('[L5] [U1] recalling the second of three, then the third: unread 2, then 1, and a device that comes later sees both', async () => {
    for (const text of ['one', 'two', 'three']) await ana.send(conv, text);
    await ben.markRead(conv, 4);
    expect((await ben.conv(conv)).unread).toBe(3);
    await ana.recall(conv, 6);
    expect((await ben.conv(conv)).unread).toBe(2);
    const { conv: mine, event, target } = await ana.recall(conv, 7);
    expect(event).toMatchObject({ seq: 9, kind: 'RECALL', contentType: 'RECALL', content: null, recalled: false });
    expect(event.target).toEqual({ seq: 7, recalled: true, content: null });
    expect(target).toMatchObject({ seq: 7, recalled: true, recalledBy: 9, content: null, text: null, mentions: [] });
    expect(mine).toMatchObject({ id: conv, head: 9 });
    expect((await benLaptop.conv(conv)).unread).toBe(1);
    expect((await benLaptop.catchUp(conv, 4)).map(({ seq, recalled }) => [seq, recalled])).toEqual([
      [5, false],
      [6, true],
      [7, true],
      [8, false],
      [9, false],
    ]);
  });

  test('[L5] the newest message is recalled: head rises by the recall, lastEvent shows no body, markRead(head) works', async () => {
    await ana.send(conv, 'secret');
    await ana.recall(conv, 5);
    const [node] = (await ben.convs({ first: 1 })).nodes;
    expect(node).toMatchObject({
      id: conv,
      head: 6,
      unread: 0,
      lastEvent: { seq: 6, content: null, target: { content: null } },
    });
    expect(await ben.markRead(conv, 6)).toMatchObject({ read: 6, unread: 0 });
  });

  test('[L5] [U1] all unread messages recalled, then markRead(head): read = head, nothing unread', async () => {
    for (const seq of [5, 6, 7]) expect((await ana.send(conv, 'oops')).event.seq).toBe(seq);
    for (const seq of [5, 6, 7]) await ana.recall(conv, seq);
    expect(await ben.markRead(conv, 10)).toMatchObject({ read: 10, unread: 0, head: 10 });
    expect(await ben.audit(conv)).toMatchObject({ unread: 0, seqs: [] });
  });

  test('[L5] nobody gets the body again, whatever they ask, and the database does not hold it', async () => {
    const body = fresh('secret-');
    const sent = await ben.send(conv, body, { mentions: ['ana'] });
    const quoting = await ana.send(conv, 'see above', { quote: 5 });
    expect(JSON.stringify([await ana.catchUp(conv), quoting])).toContain(body);
    await ben.recall(conv, 5);
    const again = await ben.send(conv, body, { mentions: ['ana'], clientId: sent.event.clientId });
    expect(again).toMatchObject({
      duplicate: true,
      event: { seq: 5, recalled: true, recalledBy: 7, content: null, mentions: [] },
    });
    const everywhere = [ana, ben, benLaptop].map(async (actor) => [
      await actor.catchUp(conv),
      await actor.history(conv),
      await actor.history(conv, { first: 200 }),
      await actor.convs(),
      await outcomeOf(actor.send(conv, 'quoting', { quote: 5 })),
    ]);
    expect(JSON.stringify(await Promise.all(everywhere)) + JSON.stringify(again)).not.toContain(body);
    expect(JSON.stringify(await everything())).not.toContain(body);
    const quote = (await ana.catchUp(conv, 5)).find(({ seq }) => seq === 6)?.quote;
    expect(quote).toEqual({ seq: 5, contentType: null, sender: null, content: null });
  });

  test('[L5] [H1] a hint that goes out after the recall carries no body, and the hint of the recall its target', async () => {
    const document = `subscription { message { resync seq contentType event { seq recalled content quote { content } }
      target { seq recalled content } conv { id head unread lastEvent { seq content } } } }`;
    const hints = await world.app.subscribe(benLaptop.credential, document);
    await hints.next();
    const stop = gate.stopAt('before publish');
    const sending = ana.send(conv, 'secret');
    await stop.reached;
    await ana.recall(conv, 5);
    const recalled = await hints.next();
    stop.letGo();
    await sending;
    const late = await hints.next();
    expect(recalled.data).toMatchObject({
      message: {
        seq: 6,
        contentType: 'RECALL',
        event: { seq: 6, content: null },
        target: { seq: 5, recalled: true, content: null },
      },
    });
    expect(late.data).toMatchObject({
      message: { seq: 5, event: { seq: 5, recalled: true, content: null }, conv: { head: 6 } },
    });
    expect(JSON.stringify(hints.all)).not.toContain('secret');
    await hints.socket.close();
  });

  test('[L5] racing recalls of the sender and the owner: one recall event, and every later one answers with it', async () => {
    const { seq } = (await ben.send(conv, 'twice')).event;
    const racers = [ana, ben, benLaptop, ana, ben].flatMap((actor) => [actor, actor, actor, actor]);
    const recalls = await Promise.all(racers.map((actor) => actor.recall(conv, seq)));
    expect(recalls.map(({ event }) => event.seq)).toEqual(recalls.map(() => seq + 1));
    await age(recallWindowMs * 2);
    const hints = await world.app.subscribe(ana.credential, 'subscription { message { seq } }');
    await hints.next();
    expect(await ben.recall(conv, seq)).toMatchObject({
      event: { seq: seq + 1 },
      target: { seq, recalledBy: seq + 1 },
    });
    expect((await ana.conv(conv)).head).toBe(seq + 1);
    await ana.send(conv, 'next');
    expect((await hints.next()).data).toEqual({ message: { seq: seq + 2 } }); // the repeat told nobody
    await hints.socket.close();
  });

  test('[L5] [M1] who could not see the target gets a recall without it; who could not see the recall gets no seq of it', async () => {
    await ana.send(conv, 'while cho was away'); // 5
    await ana.addMembers(conv, ['cho']); // 6
    await ana.recall(conv, 5); // 7
    await ben.recall(conv, 3); // 8
    await cho.leave(conv); // 9
    await ana.send(conv, 'gone again'); // 10
    const events = await cho.catchUp(conv);
    expect(events.map(({ seq, target, recalledBy }) => [seq, target?.seq ?? null, recalledBy])).toEqual([
      [2, null, null],
      [3, null, 8],
      [4, null, null],
      [6, null, null],
      [7, null, null],
      [8, 3, null],
      [9, null, null],
    ]);
    await ben.send(conv, 'x'); // 11
    await ana.addMembers(conv, ['cho']); // 12
    await cho.send(conv, 'y'); // 13
    await cho.leave(conv); // 14
    await ana.recall(conv, 13);
    expect((await cho.catchUp(conv, 12)).at(0)).toMatchObject({
      seq: 13,
      recalled: true,
      recalledBy: null,
      content: null,
    });
  });
});

describe('who may recall what', () => {
  const systemEvents: [string, () => number | Promise<number>][] = [
    ['the invitation', () => 2],
    ['a leave', () => 4],
    ['a recall', async () => (await ben.recall(conv, 3)).event.seq],
    ['nothing: 0', () => 0],
    ['nothing: above head', () => 99],
    [
      'what retention removed',
      async () => {
        await world.app.deps.store.conversations.raiseFloor(conv as never, 4);
        return 3;
      },
    ],
  ];
  test.each(systemEvents)('[L5] not even the owner recalls %s', async (_, find) => {
    const seq = await find();
    const before = await everything();
    expect((await refusalOf(ana.recall(conv, seq))).extensions).toEqual({ code: 'NOT_RECALLABLE', retryable: false });
    expect(await everything()).toEqual(before);
  });

  test('[L6] [M1] an admin recalls nothing that they cannot see', async () => {
    await ana.addMembers(conv, ['cho']);
    await setRole('cho', 'ADMIN');
    const { seq } = (await ben.send(conv, 'seen')).event;
    expect(await outcomeOf(cho.recall(conv, seq))).toBe('ok');
    await cho.leave(conv);
    const { seq: hidden } = (await ben.send(conv, 'hidden')).event;
    await ana.addMembers(conv, ['cho']);
    await setRole('cho', 'ADMIN');
    expect(await outcomeOf(cho.recall(conv, hidden))).toBe('NOT_RECALLABLE');
  });

  type Who = 'own' | 'other';
  const table: { role: string; whose: Who; inWindow: string; later: string }[] = [
    { role: 'OWNER', whose: 'own', inWindow: 'ok', later: 'ok' },
    { role: 'OWNER', whose: 'other', inWindow: 'ok', later: 'ok' },
    { role: 'ADMIN', whose: 'own', inWindow: 'ok', later: 'ok' },
    { role: 'ADMIN', whose: 'other', inWindow: 'ok', later: 'ok' },
    { role: 'MEMBER', whose: 'own', inWindow: 'ok', later: 'NOT_RECALLABLE' },
    { role: 'MEMBER', whose: 'other', inWindow: 'NOT_RECALLABLE', later: 'NOT_RECALLABLE' },
    { role: 'former', whose: 'own', inWindow: 'NOT_MEMBER', later: 'NOT_MEMBER' },
    { role: 'stranger', whose: 'other', inWindow: 'NOT_MEMBER', later: 'NOT_MEMBER' },
    { role: 'service', whose: 'other', inWindow: 'FORBIDDEN', later: 'FORBIDDEN' },
    { role: 'service as MEMBER', whose: 'own', inWindow: 'ok', later: 'NOT_RECALLABLE' },
    { role: 'peer of a DIRECT', whose: 'own', inWindow: 'ok', later: 'NOT_RECALLABLE' },
    { role: 'peer of a DIRECT', whose: 'other', inWindow: 'NOT_RECALLABLE', later: 'NOT_RECALLABLE' },
  ];
  const cells = table.flatMap(({ inWindow, later, ...cell }) => [
    { ...cell, when: 'within the window', ageMs: recallWindowMs / 2, code: inWindow },
    { ...cell, when: 'later', ageMs: recallWindowMs * 1.5, code: later },
  ]);
  test.each(cells)('[L6] $role recalls $whose $when: $code', async ({ role, whose, ageMs, code }) => {
    if (role.endsWith('DIRECT')) conv = (await ana.createConv({ type: 'DIRECT', members: ['ben'] })).conv.id;
    let actor =
      role === 'OWNER'
        ? ana
        : role === 'service'
          ? world.service
          : role.startsWith('service')
            ? world.asUser('ben')
            : ben;
    if (role === 'stranger') {
      const user = fresh('stranger');
      await world.users(user);
      actor = world.asUser(user);
    }
    if (role === 'ADMIN') await setRole('ben', 'ADMIN');
    const sender = (whose === 'own') === (actor === ana) ? ana : ben;
    const { seq } = (await sender.send(conv, 'mine or not')).event;
    if (role === 'former') await ben.leave(conv);
    await age(ageMs);
    expect(await outcomeOf(actor.recall(conv, seq))).toBe(code);
    expect((await ana.catchUp(conv, seq - 1))[0]?.recalled).toBe(code === 'ok');
  });
});
