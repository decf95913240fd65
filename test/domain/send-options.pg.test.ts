// What may come with a send: a quote, mentions, and how far the sender has read.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { dump } from '../support/dump.js';
import { outcomeOf, refusalOf } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, benLaptop: Actor, cho: Actor;
/** Of ana (owner) and ben, with cho as a former member; head 4. */
let conv: string;

const everything = () => dump(world.app.deps.store.pool);

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
beforeEach(async () => {
  conv = (await ana.createConv({ members: ['ben', 'cho'] })).conv.id;
  await ben.send(conv, 'before cho went'); // 3
  await cho.leave(conv); // 4
});

test('[L3] [R7] markReadUpTo reads in the same transaction, on a repeat too; without it a send reads nothing', async () => {
  const hints = await world.app.subscribe(benLaptop.credential, 'subscription { readChanged { read unread head } }');
  await hints.next();
  const clientId = fresh();
  await ana.send(conv, 'a'); // 5
  expect(await ben.send(conv, 'b', { clientId })).toMatchObject({ conv: { head: 6, read: 0, unread: 1 } });
  expect(await ben.send(conv, 'b', { clientId, markReadUpTo: 4 })).toMatchObject({
    duplicate: true,
    conv: { read: 4, unread: 1 },
  });
  expect(await ben.send(conv, 'c', { markReadUpTo: 5 })).toMatchObject({ conv: { read: 5, unread: 0, head: 7 } });
  expect(await ben.send(conv, 'd', { markReadUpTo: 3 })).toMatchObject({ conv: { read: 5 } });
  await ben.markRead(conv, 8);
  const told = [await hints.next(), await hints.next(), await hints.next()].map(({ data }) => data?.['readChanged']);
  expect(told).toEqual([
    { read: 4, unread: 1, head: 6 },
    { read: 5, unread: 0, head: 7 },
    { read: 8, unread: 0, head: 8 },
  ]);
  await hints.socket.close();
});

test('[R7] markReadUpTo above head refuses the whole send, fresh or repeated, and the key stays free', async () => {
  const { clientId } = (await ben.send(conv, 'b')).event;
  const before = await everything();
  for (const key of [clientId, 'free']) {
    const { extensions } = await refusalOf(ben.send(conv, 'b', { clientId: key, markReadUpTo: 6 }));
    expect(extensions).toEqual({ code: 'CURSOR_AHEAD', retryable: false, head: 5 });
  }
  expect(await everything()).toEqual(before);
  expect(await ben.send(conv, 'b', { clientId: 'free', markReadUpTo: 5 })).toMatchObject({
    duplicate: false,
    event: { seq: 6 },
  });
  await ana.removeMember(conv, 'ben'); // 7
  const late = await ben.send(conv, 'b', { clientId: 'free', markReadUpTo: 99 });
  expect(late).toMatchObject({ duplicate: true, conv: { read: 7, head: 7 } });
});

test('[M1] a quote shows to each what they may see of it', async () => {
  await ana.addMembers(conv, ['cho']); // 5
  await ana.send(conv, 'away, cho?', { quote: 3 }); // 6
  await ana.send(conv, 'on the quote', { quote: 6 }); // 7
  const quoteOf = async (actor: Actor, seq: number) => (await actor.catchUp(conv, seq - 1))[0]?.quote;
  const shown = { seq: 3, contentType: 'TEXT', sender: { id: 'ben' }, content: { text: 'before cho went' } };
  expect(await quoteOf(ben, 6)).toEqual(shown);
  expect(await quoteOf(cho, 6)).toEqual(shown); // cho was there at 3
  const guest = fresh('guest');
  await world.users(guest);
  await ana.addMembers(conv, [guest]); // 8
  await ana.send(conv, 'for the guest', { quote: 3 }); // 9
  expect(await quoteOf(world.asUser(guest), 9)).toEqual({ seq: 3, contentType: null, sender: null, content: null });
  expect(await outcomeOf(world.asUser(guest).send(conv, 'hm', { quote: 3 }))).toBe('BAD_USER_INPUT');
  await world.app.deps.store.conversations.raiseFloor(conv as never, 4);
  expect(await quoteOf(ben, 6)).toEqual({ seq: 3, contentType: null, sender: null, content: null });
  await ana.recall(conv, 7);
  expect(await quoteOf(ben, 7)).toBeNull();
});

test('[L1] [P1] what cannot be quoted: system events, nothing, the recalled, what is not there yet', async () => {
  await ben.recall(conv, 3); // 5
  const before = await everything();
  for (const quote of [0, 1, 2, 3, 4, 5, 6, 99])
    expect(await outcomeOf(ana.send(conv, 'hm', { quote }))).toBe('BAD_USER_INPUT');
  expect(await everything()).toEqual(before);
});

test('[P1] mentions: at most 50, each once', async () => {
  const many = Array.from({ length: 50 }, (_, n) => `user${String(n)}`);
  expect((await ana.send(conv, 'all', { mentions: [...many, 'user0'] })).event.mentions).toEqual(many);
  const { extensions } = await refusalOf(ana.send(conv, 'more', { mentions: [...many, 'ben'] }));
  expect(extensions).toEqual({ code: 'BAD_USER_INPUT', retryable: false, limit: 50 });
});
