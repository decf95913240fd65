// Signals: who is told, what they leave behind (nothing), and what stops them.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { act } from '../support/contacts.js';
import { dump } from '../support/dump.js';
import { outcomeOf } from '../support/outcome.js';
import { listenToSignals, signal } from '../support/signals.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, anaLaptop: Actor, ben: Actor, cho: Actor;
let conv: string;

beforeAll(async () => {
  world = await startWorld();
  [ana, anaLaptop] = [await world.device('ana', 'ana-phone'), await world.device('ana', 'ana-laptop')];
  [ben, cho] = [await world.device('ben'), await world.device('cho')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
});

test('[X1] [H6] [H10] typing reaches every device of the members, the sender’s other ones too, and nobody else; nothing is kept', async () => {
  const [own, other, his, hers] = await Promise.all([ana, anaLaptop, ben, cho].map(listenToSignals));
  const before = await dump(world.app.deps.store.pool);
  expect(await signal(ana, conv)).toBe(2);
  const typing = { conversationType: 'GROUP', contentType: 'TYPING', conv: { id: conv, unread: 0 }, content: null };
  for (const live of [own, other]) {
    expect(await live?.next()).toMatchObject({ ...typing, sender: { id: 'ana' }, originDevice: 'ana-phone' });
  }
  expect(await his?.next()).toMatchObject({ ...typing, sender: { id: 'ana', name: 'ana' }, originDevice: null });
  expect(await dump(world.app.deps.store.pool)).toEqual(before);
  // the next thing that cho hears is meant for her
  const { conv: with_ } = await cho.createConv({ members: ['ana'] });
  await signal(ana, with_.id, { contentType: 'CALL', content: { offer: 'x' } });
  expect(await hers?.next()).toMatchObject({ contentType: 'CALL', content: { offer: 'x' }, conv: { id: with_.id } });
});

test('[X1] calls are told to whom they name, in order, each by itself', async () => {
  await ana.addMembers(conv, ['cho']);
  const [his, hers] = [await listenToSignals(ben), await listenToSignals(cho)];
  for (let n = 0; n < 5; n++) {
    expect(await signal(ana, conv, { contentType: 'CALL', content: { n }, to: ['ben', 'nobody'] })).toBe(1);
  }
  for (let n = 0; n < 5; n++) expect(await his.next()).toMatchObject({ content: { n } });
  await signal(ana, conv, { to: ['cho'] });
  expect(await hers.next()).toMatchObject({ contentType: 'TYPING' });
});

test('[X2] [K6] whoever is blocked, has left or never was there signals to nobody', async () => {
  const direct = (await ana.createConv({ type: 'DIRECT', members: ['ben'] })).conv.id;
  await act(ben, 'blockContact', 'ana');
  expect(await outcomeOf(signal(ana, direct))).toBe('BLOCKED');
  await act(ben, 'unblockContact', 'ana');
  expect(await signal(ana, direct)).toBe(2);
  await ben.leave(conv);
  expect(await outcomeOf(signal(ben, conv))).toBe('NOT_MEMBER');
  expect(await outcomeOf(signal(cho, conv))).toBe('NOT_MEMBER');
});

test('[X3] a signal that comes too late is not sent; the next one is', async () => {
  const his = await listenToSignals(ben);
  const about = { kind: 'signal', conv: conv as never, conversationType: 'GROUP', contentType: 'TYPING' } as const;
  const old = { ...about, sender: 'ana' as never, originDevice: null, content: null, sentAt: Date.now() - 11_000 };
  world.app.deps.bus.publish(['ben' as never], old);
  await signal(ana, conv, { contentType: 'CALL', content: { now: true } });
  expect(await his.next()).toMatchObject({ contentType: 'CALL', content: { now: true } });
});

test('[X4] a broadcast of the service reaches everybody who is online, whatever they are members of', async () => {
  const lives = await Promise.all([ana, ben, cho].map(listenToSignals));
  await world.service.ask('mutation { broadcast(content: { notice: "back in a minute" }) { content } }');
  for (const live of lives) {
    expect(await live.next()).toMatchObject({
      conversationType: 'NONE',
      contentType: 'BROADCAST',
      conv: null,
      sender: null,
      content: { notice: 'back in a minute' },
    });
  }
});

test('[X1] signals move no badge and no number', async () => {
  const live = await ben.app.subscribe(ben.credential, 'subscription { badgeChanged { unread } }');
  const first = await live.next();
  await signal(ana, conv);
  const { event } = await ana.send(conv, 'counts');
  expect(event.seq).toBe(3);
  const next = await live.next();
  const unread = (item: typeof next) => (item.data?.['badgeChanged'] as { unread: number }).unread;
  expect(unread(next)).toBe(unread(first) + 1);
});
