// What leaves on an error, over HTTP, event streams and WebSocket alike: a code of the closed list, and nothing else.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pino } from 'pino';
import { errorCodes } from '../../src/domain/errors.js';
import { startApp, type GraphQLAnswer, type TestApp } from '../support/app.js';

let app: TestApp;
let ana: string;
const logged: Record<string, unknown>[] = [];

beforeAll(async () => {
  const log = pino({ level: 'warn' }, { write: (line) => logged.push(JSON.parse(line) as Record<string, unknown>) });
  app = await startApp({ overrides: { log } });
  await app.query(app.serviceKey, 'mutation { upsertUser(input: { id: "ana" }) { user { id } } }');
  const made = await app.query<{ registerDevice: { credential: string } }>(
    app.serviceKey,
    'mutation { registerDevice(input: { user: "ana", deviceId: "ana-phone" }) { credential } }',
  );
  ana = made.data?.registerDevice.credential ?? '';
});
afterAll(() => app[Symbol.asyncDispose]());

const codes = ({ errors }: GraphQLAnswer) => errors?.map(({ extensions }) => extensions?.['code']);

it.each([
  ['a syntax error', 'query { convs(', 'GRAPHQL_PARSE_FAILED'],
  ['an unknown field', '{ nothing }', 'GRAPHQL_VALIDATION_FAILED'],
  ['a missing selection', '{ viewer }', 'GRAPHQL_VALIDATION_FAILED'],
  ['a literal of the wrong form', '{ convs(first: "one") { asOf } }', 'BAD_USER_INPUT'],
  ['a scalar literal of the wrong form', 'mutation { markRead(conv: "x", seq: 1.5) { read } }', 'BAD_USER_INPUT'],
  ['an enum literal that does not exist', '{ convs(orderBy: SIZE) { asOf } }', 'BAD_USER_INPUT'],
  ['an operation that is not there', 'query A { __typename } query B { __typename }', 'BAD_USER_INPUT'],
])('[P1] %s', async (_, document, code) => {
  const answer = await app.query(ana, document);
  expect(codes(answer)).toEqual([code]);
  expect(answer.errors?.[0]?.extensions?.['retryable']).toBe(false);
});

it.each([
  ['a string', '7'],
  ['a fraction', 7.5],
  ['a negative number', -1],
  ['beyond 2^53 - 1', 2 ** 53],
  ['null', null],
])('[P1] a Seq variable that is %s is BAD_USER_INPUT', async (_, seq) => {
  const document = 'mutation ($seq: Seq!) { markRead(conv: "x", seq: $seq) { read } }';
  expect(codes(await app.query(ana, document, { seq }))).toEqual(['BAD_USER_INPUT']);
});

it('[P1] the token limit is BAD_USER_INPUT that names it', async () => {
  const answer = await app.query(ana, `{ ${'__typename '.repeat(5_000)} }`);
  expect(codes(answer)).toEqual(['BAD_USER_INPUT']);
  expect(answer.errors?.[0]?.extensions?.['limit']).toBe(4_000);
});

it('[P1] [P6] a body above 256 KiB is refused with 413 before anything runs', async () => {
  const body = { query: '{ __typename }', variables: { x: 'x'.repeat(300_000) } };
  const response = await app.post(ana, body);
  expect(response.status).toBe(413);
  expect(codes((await response.json()) as GraphQLAnswer)).toEqual(['BAD_USER_INPUT']);
});

it('[P1] batches of operations are refused', async () => {
  const response = await app.post(ana, [{ query: '{ __typename }' }, { query: '{ __typename }' }]);
  expect(response.status).toBe(400);
  expect(codes((await response.json()) as GraphQLAnswer)).toEqual(['BAD_USER_INPUT']);
});

it.each([
  ['no JSON', '{'],
  ['no object', '7'],
  ['no query', '{}'],
  ['an unknown key', '{"query":"{ __typename }","more":1}'],
  ['variables that are no object', '{"query":"{ __typename }","variables":[1]}'],
])('[P6] a body with %s is a 4xx with BAD_USER_INPUT', async (_, body) => {
  const response = await app.post(ana, body);
  expect(response.status).toBe(400);
  const text = await response.text();
  expect(codes(JSON.parse(text) as GraphQLAnswer)).toEqual(['BAD_USER_INPUT']);
  expect(text).not.toContain('stack');
});

it('[P6] a refusal of an executed operation answers 200', async () => {
  const response = await app.post(ana, { query: '{ conv(id: "nope") { id } }' });
  expect(response.status).toBe(200);
  expect(codes((await response.json()) as GraphQLAnswer)).toEqual(['NOT_MEMBER']);
});

it('[P6] an executed operation answers 200 also to a client of application/graphql-response+json', async () => {
  const accept = { accept: 'application/graphql-response+json' };
  const response = await app.post(null, { query: '{ viewer { id } }' }, accept);
  expect(response.status).toBe(200);
  expect(codes((await response.json()) as GraphQLAnswer)).toEqual(['UNAUTHENTICATED']);
});

it('[P2] an unexpected error is masked, and the log finds it by its request id', async () => {
  logged.length = 0;
  // the table is gone for a moment: Prisma has a lot to say about that
  await app.deps.store.pool.query('ALTER TABLE users RENAME TO hidden_users');
  try {
    const response = await app.post(ana, { query: '{ viewer { user { name } } }' }, { 'x-request-id': 'find-me' });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get('x-request-id')).toBe('find-me');
    const { errors } = JSON.parse(text) as GraphQLAnswer;
    expect(errors).toMatchObject([
      {
        message: 'Unexpected error.',
        extensions: { code: 'INTERNAL_SERVER_ERROR', requestId: 'find-me', retryable: true },
      },
    ]);
    expect(text).not.toMatch(/prisma|users|relation|\.ts|node_modules/iu);
    expect(logged.find(({ requestId }) => requestId === 'find-me')?.['err']).toMatchObject({
      message: expect.stringMatching(/users/u) as string,
    });
  } finally {
    await app.deps.store.pool.query('ALTER TABLE hidden_users RENAME TO users');
  }
});

it('[P2] over a WebSocket the same error says as little', async () => {
  const live = await app.subscribe(ana, 'subscription { badgeChanged { unread } }');
  await live.next();
  await app.deps.store.pool.query('ALTER VIEW conv_state RENAME TO hidden_state');
  try {
    const again = live.socket.subscribe('subscription { badgeChanged { unread } }');
    const answer = await again.next();
    expect(codes(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
    expect(JSON.stringify(answer)).not.toMatch(/prisma|conv_state|relation/iu);
    expect(answer.errors?.[0]?.extensions).toMatchObject({ retryable: true, requestId: expect.any(String) as string });
  } finally {
    await app.deps.store.pool.query('ALTER VIEW hidden_state RENAME TO conv_state');
    await live.socket.close();
  }
});

it('[P2] a database that is away while the credential is looked up is a 503: nothing ran', async () => {
  await app.deps.store.pool.query('ALTER TABLE devices RENAME TO hidden_devices');
  try {
    const response = await app.post(ana, { query: '{ viewer { id } }' });
    expect(response.status).toBe(503);
    expect(codes((await response.json()) as GraphQLAnswer)).toEqual(['INTERNAL_SERVER_ERROR']);
  } finally {
    await app.deps.store.pool.query('ALTER TABLE hidden_devices RENAME TO devices');
  }
});

it('[P2] every error of this file had a code of the closed list', async () => {
  const answers = await Promise.all(
    ['{', '{ x }', '{ viewer { id } }', 'mutation { ack(conv: 1, seq: 1) { head } }'].map((q) => app.query(null, q)),
  );
  for (const { errors = [] } of answers) {
    expect(errors.length).toBeGreaterThan(0);
    for (const { extensions } of errors) {
      expect(Object.keys(errorCodes)).toContain(extensions?.['code']);
      expect(extensions?.['retryable']).toBeTypeOf('boolean');
    }
  }
});
