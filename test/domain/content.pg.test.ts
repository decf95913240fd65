// What users may send: each content type in its shape and no other. A refused one is a typed refusal, and nothing is stored.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { contentTypes } from '../../src/domain/content-types.js';
import type { GraphQLAnswer } from '../support/app.js';
import { dump } from '../support/dump.js';
import { refusalOf } from '../support/outcome.js';
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

/** Each type: its smallest form, its largest set of keys, and values that do not fit. */
const shapes: Record<string, { least: object; most?: object; wrong: [string, unknown][] }> = {
  TEXT: {
    least: { text: 'hi' },
    wrong: [
      ['text', 1],
      ['text', null],
      ['text', ''],
      ['text', ' \t\n\u00a0\u2003'],
      ['text', ['hi']],
    ],
  },
  IMAGE: {
    least: { url },
    most: { url, width: 0, height: 10_000, size: 2 ** 53 - 1 },
    wrong: [
      ['url', 5],
      ['width', -1],
      ['width', 0.5],
      ['height', '10'],
      ['size', 2 ** 53],
      ['size', null],
    ],
  },
  VOICE: {
    least: { url, durationMs: 1 },
    wrong: [
      ['durationMs', '1'],
      ['durationMs', -1],
      ['durationMs', 1e300],
    ],
  },
  VIDEO: {
    least: { url, durationMs: 1 },
    most: { url, durationMs: 1, coverUrl: url },
    wrong: [['coverUrl', 'data:image/png,x']],
  },
  FILE: {
    least: { url, name: 'a.pdf' },
    most: { url, name: 'a'.repeat(255), size: 1 },
    wrong: [
      ['name', 'a'.repeat(256)],
      ['name', {}],
    ],
  },
  MERGE: {
    least: { title: 'talk', items: [item] },
    most: {
      title: 'talk',
      items: Array.from({ length: 100 }, () => ({ ...item, content: { a: [null, { b: true }] } })),
    },
    wrong: [
      ['items', []],
      ['items', Array.from({ length: 101 }, () => item)],
      ['items', [{ ...item, extra: 1 }]],
      ['items', [{ ...item, content: 'text' }]],
      ['items', [{ senderName: 'ben', contentType: 'TEXT' }]],
      ['items', [null]],
      ['title', 'x'.repeat(256)],
    ],
  },
  CARD: {
    least: { kind: 'user', id: 'ben' },
    most: { kind: 'group', id: 'i'.repeat(64) },
    wrong: [
      ['kind', 'bot'],
      ['id', ''],
      ['id', 'i'.repeat(65)],
    ],
  },
  FACE: {
    least: { id: 'smile' },
    wrong: [
      ['id', 7],
      ['id', ''],
    ],
  },
  MATERIAL: {
    least: { title: 'News', url },
    most: { title: 'News', url, coverUrl: url, summary: 's'.repeat(255) },
    wrong: [
      ['summary', 's'.repeat(256)],
      ['title', 1],
    ],
  },
};
const sendable = Object.entries(shapes);

describe('shapes', () => {
  test('[P1] the table has every type that users may send', () => {
    const counting = Object.entries(contentTypes).filter(([, { counts }]) => counts);
    expect(Object.keys(shapes).toSorted()).toEqual(counting.map(([name]) => name).toSorted());
  });

  test.each(sendable)('[P1] %s is accepted in its shape', async (type, { least, most }) => {
    await accepted(type, least);
    if (most) await accepted(type, most);
  });

  test.each(sendable)('[P1] %s with an unknown key is refused', async (type, { least }) => {
    await refused(type, { ...least, extra: 1 });
    await refused(type, { ...least, '': '' });
    await refused(type, { ...least, constructor: 1 });
  });

  test.each(sendable)('[P1] %s without a needed key is refused', async (type, { least }) => {
    for (const key of Object.keys(least)) await refused(type, { ...least, [key]: undefined });
  });

  test.each(sendable)('[P1] %s that is no object is refused', async (type) => {
    for (const content of [null, 'hi', 1, true, [], [shapes[type]?.least]]) await refused(type, content);
  });

  const misfits = sendable.flatMap(([type, { least, wrong }]) =>
    wrong.map(([key, value]) => ({ type, key, value, least })),
  );
  test.each(misfits)(
    '[P1] $type with a $key that does not fit is refused (%#)',
    async ({ type, key, value, least }) => {
      await refused(type, { ...least, [key]: value });
    },
  );

  test('[P1] FACE has an id or a url, not both', async () => {
    await accepted('FACE', { url });
    await refused('FACE', { url, id: 'smile' });
    await refused('FACE', {});
  });
});

describe('types', () => {
  const others = Object.entries(contentTypes).filter(([, { counts }]) => !counts);
  test.each(others)('[P1] %s comes from the service only', async (type) => {
    await refused(type, { text: 'hi' });
    await refused(type, { users: ['ben'] });
  });

  test.each(['text', 'TYPING', 'FRIEND_ADD', '', '101', '__proto__', 'toString'])(
    '[P1] no such type: %j',
    async (type) => {
      await refused(type, { text: 'hi' });
    },
  );
});

describe('limits', () => {
  const lengths: [string, string, boolean][] = [
    ['4,096 letters', 'a'.repeat(4_096), true],
    ['4,097 letters', 'a'.repeat(4_097), false],
    ['4,096 letters and a space', `${'a'.repeat(4_096)} `, false],
    ['2,000 characters of two units', astral.repeat(2_000), true],
    ['4,096 characters of two bytes: a text is counted in characters', 'é'.repeat(4_096), true],
    ['4,096 characters of four bytes', astral.repeat(4_096), true],
    ['4,097 characters of two units', astral.repeat(4_097), false],
  ];
  test.each(lengths)('[P1] %s', async (_, text, fits) => {
    await (fits ? accepted('TEXT', { text }) : refused('TEXT', { text }));
  });

  test('[P1] 8 KiB of content, to the byte', async () => {
    const contentOf = (bytes: number) => {
      const rest = { title: 'talk', items: [{ senderName: 'ben', contentType: 'TEXT', content: { text: '' } }] };
      const text = 'a'.repeat(bytes - Buffer.byteLength(JSON.stringify(rest)));
      return { ...rest, items: [{ senderName: 'ben', contentType: 'TEXT', content: { text } }] };
    };
    await accepted('MERGE', contentOf(8_192));
    expect(await refused('MERGE', contentOf(8_193))).toMatchObject({ limit: 8_192 });
  });

  test('[P1] a url of 2,048 characters', async () => {
    const long = `https://a.example/${'u'.repeat(2_048 - 18)}`;
    await accepted('IMAGE', { url: long });
    await refused('IMAGE', { url: `${long}u` });
    await refused('IMAGE', { url: '' });
  });

  const schemes = [
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    ' javascript:alert(1)',
    '\tjava\nscript:alert(1)',
    '\u0001javascript:alert(1)',
    'data:text/html,x',
    'DATA:,x',
    'vbscript:x',
    'file:///etc/passwd',
  ];
  test.each(schemes)('[P1] a url that a browser would run or read: %j', async (bad) => {
    for (const [type, { least, most }] of sendable) {
      for (const key of ['url', 'coverUrl'].filter((name) => Object.hasOwn({ ...least, ...most }, name))) {
        await refused(type, { ...least, [key]: bad });
      }
    }
    await refused('FACE', { url: bad });
  });

  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const listed = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  test.each([20, 100, 1_000, 20_000])('[P1] [P2] content nested %i deep does not break anything', async (depth) => {
    const query = 'mutation ($input: SendInput!) { send(input: $input) { duplicate } }';
    for (const deep of [nested(depth), listed(depth * 2)]) {
      const merged = `{"title":"deep","items":[{"senderName":"ben","contentType":"TEXT","content":{"a":${deep}}}]}`;
      for (const [contentType, content] of [
        ['MERGE', merged],
        ['MERGE', deep],
        ['TEXT', deep],
        ['TEXT', `{"text":${deep}}`],
      ] as const) {
        const input = `{"conv":"${conv}","clientId":"${fresh()}","contentType":"${contentType}","content":${content}}`;
        const response = await world.app.post(ana.credential, `{"query":"${query}","variables":{"input":${input}}}`);
        const { data, errors } = (await response.json()) as GraphQLAnswer<{ send: unknown }>;
        isStored ||= data?.send != null;
        expect(errors?.[0]?.extensions ?? { code: 'BAD_USER_INPUT' }).toMatchObject({ code: 'BAD_USER_INPUT' });
        if (depth > 32) expect(errors?.[0]?.extensions).toMatchObject({ retryable: false });
      }
    }
  });
});
