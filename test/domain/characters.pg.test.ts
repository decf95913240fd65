// Texts that a database or a browser may stumble over: stored as they were sent, or refused as bad input. Nothing breaks.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { dump } from '../support/dump.js';
import { outcomeOf, refusalOf } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor;
let conv: string;
let before: Record<string, unknown>;
let isStored = false;

const everything = () => dump(world.app.deps.store.pool);
const send = (contentType: string, content: unknown) => ana.send(conv, '', { contentType, content });
/** Sends what must not be accepted; afterEach looks whether anything was stored. */
async function refused(contentType: string, content: unknown) {
  const { extensions } = await refusalOf(send(contentType, content));
  expect(extensions).toMatchObject({ code: 'BAD_USER_INPUT', retryable: false });
  return extensions;
}
async function accepted(contentType: string, content: unknown) {
  isStored = true;
  const { event } = await send(contentType, content);
  expect(event).toMatchObject({ kind: 'MESSAGE', contentType });
  expect(event.content).toEqual(content);
  expect(await ana.catchUp(conv, event.seq - 1)).toEqual([event]);
}

beforeAll(async () => {
  world = await startWorld();
  ana = await world.device('ana');
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
  before = await everything();
});
afterEach(async () => {
  const now = await everything();
  const [then, mayDiffer] = [before, isStored];
  [before, isStored] = [now, false];
  if (!mayDiffer) expect(now).toEqual(then);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const url = 'https://files.example/a.png';
const astral = '🌊';
const item = { senderName: 'ben', contentType: 'TEXT', content: { text: 'forwarded' } };

describe('characters', () => {
  const places = ['text', 'a forwarded text', 'a forwarded key', 'a name', 'a url'] as const;
  const contentWith = (place: (typeof places)[number], text: string): [string, unknown] => {
    switch (place) {
      case 'text':
        return ['TEXT', { text: `a${text}b` }];
      case 'a forwarded text':
        return ['MERGE', { title: 't', items: [{ ...item, content: { text } }] }];
      case 'a forwarded key':
        return ['MERGE', { title: 't', items: [{ ...item, content: { [text]: 1 } }] }];
      case 'a name':
        return ['FILE', { url, name: text }];
      case 'a url':
        return ['IMAGE', { url: `https://a.example/${text}` }];
    }
  };
  // what jsonb cannot hold must be refused, not break
  const hard = ['\u0000', 'a\u0000b', '\ud800', '\udc00', '\ud83c', '\udf0a\ud83c'];
  test.each(places.flatMap((place) => hard.map((text) => ({ place, text, name: JSON.stringify(text) }))))(
    '[P1] [P2] $name in $place is refused as bad input',
    async ({ place, text }) => {
      await refused(...contentWith(place, text));
    },
  );

  const fine = [
    '\u0001',
    '\u007f',
    '\u2028',
    '\ufeff',
    '\uffff',
    astral,
    '\\u0000',
    "'; DROP TABLE events; --",
    '"',
    '\\',
    '%s',
    '$1',
    '\u202e',
  ];
  test.each(fine)('[P1] %j comes back as it was sent', async (text) => {
    for (const place of ['text', 'a forwarded text', 'a forwarded key'] as const)
      await accepted(...contentWith(place, text));
  });

  test('[P1] [P2] the same characters in ids, quotes and mentions are refused', async () => {
    for (const bad of ['\u0000', '\ud800']) {
      expect(await outcomeOf(ana.send(conv, 'hi', { clientId: `a${bad}` }))).toBe('BAD_USER_INPUT');
      expect(await outcomeOf(ana.send(conv, 'hi', { mentions: [`a${bad}`] }))).toBe('BAD_USER_INPUT');
      expect(await outcomeOf(ana.send(`${conv}${bad}`, 'hi'))).toBe('NOT_MEMBER');
      expect(await outcomeOf(ana.createConv({ title: `a${bad}` }))).toBe('BAD_USER_INPUT');
      expect(await outcomeOf(ana.createConv({ members: [`a${bad}`] }))).toBe('BAD_USER_INPUT');
      expect(await outcomeOf(ana.reinstall(`a${bad}`))).toBe('BAD_USER_INPUT');
      expect(await outcomeOf(ana.addMembers(conv, [`a${bad}`]))).toBe('BAD_USER_INPUT');
      expect(await outcomeOf(world.users(`a${bad}`))).toBe('BAD_USER_INPUT');
    }
  });

  test('[L3] numbers and key order are compared as canonical JSON', async () => {
    isStored = true;
    const clientId = fresh();
    const one = { title: 't', items: [{ ...item, content: { b: 1, a: 1.5 } }] };
    const two = { items: [{ content: { a: 1.5, b: 1 }, contentType: 'TEXT', senderName: 'ben' }], title: 't' };
    await ana.send(conv, '', { clientId, contentType: 'MERGE', content: one });
    expect(await ana.send(conv, '', { clientId, contentType: 'MERGE', content: two })).toMatchObject({
      duplicate: true,
    });
  });
});
