// Bad input to every operation: a typed refusal of the closed list that names the limit, and nothing is changed (P1, P6).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorCodes, isRetryable, type ErrorCode } from '../../src/domain/errors.js';
import { dump } from '../support/dump.js';
import { startWorld, type Actor, type World } from '../support/world.js';
import { cases } from './bad-input.js';

let world: World;
let ana: Actor;
let before: Record<string, unknown>;
/** What the variables of a case may name: a group of ana and ben with head 3. */
let conv: string;

interface Answer {
  readonly status: number;
  readonly data: unknown;
  readonly errors: readonly { readonly message: string; readonly extensions: Readonly<Record<string, unknown>> }[];
}
async function ask(actor: Actor, query: string, variables: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  const response = await world.app.post(actor.credential, { query, variables }, actor.headers);
  const { data = null, errors = [] } = (await response.json()) as { data?: unknown; errors?: Answer['errors'] };
  return { status: response.status, data, errors };
}
/** One error, of the closed list, that says whether to retry; and nothing was changed. */
async function expectRefused({ errors }: Answer, code: ErrorCode, limit?: number): Promise<void> {
  const [error, ...more] = errors;
  expect(more).toEqual([]);
  expect(Object.keys(errorCodes)).toContain(error?.extensions['code']);
  const expected = { code, retryable: isRetryable(code), ...(limit === undefined ? {} : { limit }) };
  expect(error?.extensions, error?.message).toEqual(expect.objectContaining(expected));
  expect(error?.message).not.toBe('');
  expect(await dump(world.app.deps.store.pool)).toEqual(before);
}

beforeAll(async () => {
  world = await startWorld();
  ana = await world.device('ana', 'ana-phone');
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
  await ana.send(conv, 'hi', { clientId: 'k' });
  before = await dump(world.app.deps.store.pool);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const rows = cases.flatMap(({ values, ...rest }) =>
  values.map(([value, limit]) => ({ ...rest, value, limit, shown: JSON.stringify(value).slice(0, 40) })),
);

describe('arguments', () => {
  test.each(rows)('[P1] [P6] $name = $shown', async ({ query, value, limit, as }) => {
    const answer = await ask(
      as === 'service' ? world.service : ana,
      query,
      query.includes('$c') ? { c: conv, v: value } : { v: value },
    );
    await expectRefused(answer, 'BAD_USER_INPUT', limit);
  });

  test('[P1] every mutation is in the table', async () => {
    const document = '{ __schema { mutationType { fields { name } } queryType { fields { name args { name } } } } }';
    type Fields = { fields: { name: string; args?: unknown[] }[] };
    const { __schema } = await ana.ask<{ __schema: { mutationType: Fields; queryType: Fields } }>(document);
    const all = [...__schema.mutationType.fields, ...__schema.queryType.fields.filter(({ args }) => args?.length)];
    const conversationOnly = ['conv', 'join', 'leave', 'dissolveConv']; // see the table of M4
    const covered = new Set([...cases.map(({ name }) => name.split('(')[0]), ...conversationOnly]);
    expect(all.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
  });

  test.each([['-1'], ['0.5'], ['"3"'], ['9007199254740992'], ['1e3'], ['null'], ['true'], ['x']])(
    '[P1] as a literal: seq: %s',
    async (literal) => {
      await expectRefused(
        await ask(ana, `mutation { markRead(conv: "${conv}", seq: ${literal}) { read } }`),
        'BAD_USER_INPUT',
      );
    },
  );

  test('[P1] 0 and 2^53 - 1 are positions', async () => {
    expect(
      (await ask(ana, 'query ($c: ID!) { unreadAudit(conv: $c, after: 9007199254740991) { seqs } }', { c: conv }))
        .errors,
    ).toEqual([]);
    expect((await ask(ana, 'mutation ($c: ID!) { markRead(conv: $c, seq: 0) { read } }', { c: conv })).data).toEqual({
      markRead: { read: 0 },
    });
    await expectRefused(
      await ask(ana, 'mutation ($c: ID!) { markRead(conv: $c, seq: 9007199254740991) { read } }', { c: conv }),
      'CURSOR_AHEAD',
    );
  });

  test('[P6] what ran answers 200, each field by itself; nothing that failed takes its siblings with it', async () => {
    const query = `mutation ($c: ID!) { a: markRead(conv: $c, seq: 99) { read } b: markRead(conv: $c, seq: 0) { read } c: leave(conv: "x") { duplicate } }`;
    const { status, data, errors } = await ask(ana, query, { c: conv });
    expect([status, data]).toEqual([200, { a: null, b: { read: 0 }, c: null }]);
    expect(errors.map(({ extensions }) => extensions['code'])).toEqual(['CURSOR_AHEAD', 'NOT_MEMBER']);
  });
});

describe('documents', () => {
  const aliased = (n: number, field: string) =>
    Array.from({ length: n }, (_, index) => `a${String(index)}: ${field}`).join(' ');
  const deep = (n: number) => `query { history(conv: "x") { nodes { ${'target { '.repeat(n)}id${' }'.repeat(n)} } } }`;
  const documents: [string, string, ErrorCode, number | undefined][] = [
    ['too deep', deep(20), 'BAD_USER_INPUT', 12],
    ['too broad', `{ ${aliased(401, 'badge { id }')} }`, 'BAD_USER_INPUT', 400],
    [
      'too costly',
      `{ ${aliased(20, 'convs(first: 1000) { nodes { id title head read unread } }')} }`,
      'BAD_USER_INPUT',
      60_000,
    ],
    ['too many tokens', `{ ${'__typename '.repeat(4_001)} }`, 'BAD_USER_INPUT', 4_000],
    // deeper than the parser's stack, whatever it has left
    ['too many brackets', '{a'.repeat(1_900), 'BAD_USER_INPUT', 100],
    ['too many brackets of a list', `{ sync(from: ${'['.repeat(3_000)}`, 'BAD_USER_INPUT', 100],
    ['too many brackets of types', `query ($v: ${'['.repeat(3_000)}`, 'BAD_USER_INPUT', 100],
    ['no GraphQL', 'select 1', 'GRAPHQL_PARSE_FAILED', undefined],
    ['empty', '', 'GRAPHQL_PARSE_FAILED', undefined],
    ['an unknown field', '{ nothing }', 'GRAPHQL_VALIDATION_FAILED', undefined],
    ['a missing argument', 'mutation { markRead(seq: 3) { read } }', 'GRAPHQL_VALIDATION_FAILED', undefined],
    [
      'an unknown key',
      'mutation { createConv(input: { clientId: "c", type: GROUP, members: [], extra: 1 }) { duplicate } }',
      'BAD_USER_INPUT',
      undefined,
    ],
  ];
  test.each(documents)('[P1] %s', async (_, query, code, limit) => {
    await expectRefused(await ask(ana, query), code, limit);
  });

  test('[P1] a mutation beside a query that is too costly does not run', async () => {
    const query = `mutation { a: leave(conv: "${conv}") { duplicate conv { members(first: 200) { nodes { user { id name avatarUrl } } } } }
      ${aliased(90, `setConvSettings(conv: "${conv}", muted: true) { conv { members(first: 200) { nodes { role user { id name } } } } }`)} }`;
    const { data, errors } = await ask(ana, query);
    expect(Object.values(data as object).filter((value) => value !== null)).toEqual([]);
    const refused = { code: 'BAD_USER_INPUT', retryable: false, limit: 400 };
    expect(
      errors.filter(({ extensions }) => JSON.stringify(extensions) !== JSON.stringify({ ...extensions, ...refused })),
    ).toEqual([]);
    expect(errors).toHaveLength(91);
    expect(await dump(world.app.deps.store.pool)).toEqual(before);
  });
});
