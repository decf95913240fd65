// Channels: many readers, few writers, told once whatever their number.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { group } from '../support/groups.js';
import { listenToMessages } from '../support/live-hints.js';
import { outcomeOf } from '../support/outcome.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, cho: Actor;

beforeAll(async () => {
  world = await startWorld({
    config: { limits: { ...(await import('../../src/config.js')).defaultLimits, maxGroupMembers: 2 } },
  });
  [ana, ben, cho] = [await world.device('ana'), await world.device('ben'), await world.device('cho')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const article = { contentType: 'MATERIAL', content: { title: 'News', url: 'https://example.org/1' } };

test('[G7] [H7] readers join an open channel beyond any limit of groups, see what was before, and hear what comes', async () => {
  const { conv } = await ana.createConv({ type: 'CHANNEL', title: 'News', joinPolicy: 'OPEN', historyVisible: true });
  await ana.send(conv.id, '', article); // 2
  for (const actor of [ben, cho]) await actor.join(conv.id);
  expect(await ben.ask('query ($id: ID!) { conv(id: $id) { type mode unread } }', { id: conv.id })).toEqual({
    conv: { type: 'CHANNEL', mode: 'PULL', unread: 0 },
  });
  expect((await cho.catchUp(conv.id)).map(({ contentType }) => contentType)).toContain('MATERIAL');
  const lives = [await listenToMessages(ben), await listenToMessages(cho)];
  const { event } = await ana.send(conv.id, '', article);
  for (const live of lives)
    expect(await live.until(({ seq }) => seq === event.seq)).toMatchObject({ conv: { id: conv.id } });
  expect(await ben.conv(conv.id)).toMatchObject({ unread: 1 });
  expect(await ben.markRead(conv.id, event.seq)).toMatchObject({ unread: 0 });
  await cho.leave(conv.id);
  expect((await cho.catchUp(conv.id)).at(-1)).toMatchObject({ contentType: 'MEMBER_QUIT' });
});

test('[G7] only owner and admins write; a reader who becomes an admin does', async () => {
  const { conv } = await ana.createConv({ type: 'CHANNEL', members: ['ben', 'cho'] });
  expect(await outcomeOf(ben.send(conv.id, 'me too'))).toBe('FORBIDDEN');
  await group(ana, 'setRole', { conv: conv.id, user: 'ben', role: 'ADMIN' });
  await ben.send(conv.id, 'now I may');
  expect(await outcomeOf(cho.send(conv.id, 'x'))).toBe('FORBIDDEN');
});

test('[M2] [G7] without visible history a new reader begins at joining', async () => {
  const { conv } = await ana.createConv({ type: 'CHANNEL', joinPolicy: 'OPEN' });
  await ana.send(conv.id, 'before');
  await ben.join(conv.id);
  expect((await ben.catchUp(conv.id)).map(({ contentType }) => contentType)).toEqual(['MEMBER_ENTER']);
});
