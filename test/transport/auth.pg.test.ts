// Who may ask, by which credential, over which way.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type GraphQLAnswer, type TestApp } from '../support/app.js';

let app: TestApp;
let ana: string;

const code = ({ errors }: GraphQLAnswer) => errors?.[0]?.extensions?.['code'];
const me = '{ viewer { id device { id } } }';

async function newDevice(deviceId: string): Promise<string> {
  const document = 'mutation ($id: ID) { registerDevice(input: { user: "ana", deviceId: $id }) { credential } }';
  type Made = { registerDevice: { credential: string } };
  return (await app.query<Made>(app.serviceKey, document, { id: deviceId })).data?.registerDevice.credential ?? '';
}

beforeAll(async () => {
  app = await startApp();
  await app.query(app.serviceKey, 'mutation { upsertUser(input: { id: "ana", name: "Ana" }) { user { id } } }');
  ana = await newDevice('ana-phone');
});
afterAll(() => app[Symbol.asyncDispose]());

it('[I1] a device is known by its credential', async () => {
  expect((await app.query(ana, me)).data).toEqual({ viewer: { id: 'ana', device: { id: 'ana-phone' } } });
});

it.each([
  ['nothing of the form', 'hello'],
  ['an unknown device', `tm_nobody.${'x'.repeat(43)}.0`],
  ['a wrong secret', `tm_ana-phone.${'x'.repeat(43)}.0`],
])('[I1] a credential that is %s is UNAUTHENTICATED', async (_, credential) => {
  expect(code(await app.query(credential, me))).toBe('UNAUTHENTICATED');
});

it('[I3] an epoch above the stored one is UNAUTHENTICATED', async () => {
  expect(code(await app.query(ana.replace(/\d+$/u, '9'), me))).toBe('UNAUTHENTICATED');
});

it.each(['Basic abc', 'Bearer', 'tm_ana-phone'])('[P4] Authorization: %s is UNAUTHENTICATED', async (authorization) => {
  const response = await app.post(null, { query: me }, { authorization });
  expect(code((await response.json()) as GraphQLAnswer)).toBe('UNAUTHENTICATED');
});

it('[P4] a cookie is never read', async () => {
  const response = await app.post(null, { query: me }, { cookie: `authorization=Bearer ${ana}` });
  expect(code((await response.json()) as GraphQLAnswer)).toBe('UNAUTHENTICATED');
});

it('[I7] without a credential introspection and __typename answer', async () => {
  const answer = await app.query(null, '{ __typename __schema { queryType { name } } }');
  expect(answer).toEqual({ data: { __typename: 'Query', __schema: { queryType: { name: 'Query' } } } });
  expect(code(await app.query(null, me))).toBe('UNAUTHENTICATED');
});

it('[I6] the service key by itself names no user', async () => {
  expect(code(await app.query(app.serviceKey, me))).toBe('FORBIDDEN');
});

it('[I6] with x-tidemark-user the service key acts as that user, without a device', async () => {
  const answer = await app.query(app.serviceKey, me, {}, { 'x-tidemark-user': 'ana' });
  expect(answer.data).toEqual({ viewer: { id: 'ana', device: null } });
});

it('[I6] acting as nobody is BAD_USER_INPUT', async () => {
  expect(code(await app.query(app.serviceKey, me, {}, { 'x-tidemark-user': 'nobody' }))).toBe('BAD_USER_INPUT');
});

it('[I6] the service key is refused with an Origin header', async () => {
  const headers = { origin: 'http://localhost:4000' };
  const document = 'mutation { upsertUser(input: { id: "mallory" }) { user { id } } }';
  expect(code(await app.query(app.serviceKey, document, {}, headers))).toBe('FORBIDDEN');
});

it('[I6] x-tidemark-user without the service key is FORBIDDEN', async () => {
  const headers = { 'x-tidemark-user': 'ana' };
  expect(code(await app.query(ana, me, {}, headers))).toBe('FORBIDDEN');
  expect(code(await app.query(null, me, {}, headers))).toBe('FORBIDDEN');
});

it('[I6] two keys are valid at once, a third is not', async () => {
  const keys = ['a'.repeat(43), 'b'.repeat(43)];
  await using two = await startApp({ config: { serviceKeys: keys } });
  const document = 'mutation { upsertUser(input: { id: "ana" }) { user { id } } }';
  for (const key of keys)
    expect((await two.query(key, document)).data).toEqual({ upsertUser: { user: { id: 'ana' } } });
  expect(code(await two.query('c'.repeat(43), document))).toBe('UNAUTHENTICATED');
});

it('[I6] the service key does not open a WebSocket', async () => {
  expect(await app.socket(app.serviceKey).closed).toEqual({ code: 4401, reason: 'UNAUTHENTICATED' });
});

it('[P4] [P5] a WebSocket takes the bare token too, and no socket opens without a credential', async () => {
  const bare = app.socket(null, { payload: { authorization: ana } });
  await bare.ready;
  await bare.close();
  expect(await app.socket(null).closed).toEqual({ code: 4401, reason: 'UNAUTHENTICATED' });
  expect(await app.socket(null, { payload: { authorization: 7 } }).closed).toMatchObject({ code: 4401 });
});

it('[I3] [P5] a socket of an older install is refused with STALE_INSTALL', async () => {
  const before = await newDevice('ana-tablet');
  await app.query(before, 'mutation { reinstall(installId: "second") { credential } }');
  expect(await app.socket(before).closed).toEqual({ code: 4401, reason: 'STALE_INSTALL' });
  expect(code(await app.query(before, me))).toBe('STALE_INSTALL');
});

it('[I5] [P5] a revoked device is refused with REVOKED', async () => {
  const lost = await newDevice('ana-lost');
  await app.query(ana, 'mutation { revokeDevice(deviceId: "ana-lost") { device { id } } }');
  expect(await app.socket(lost).closed).toEqual({ code: 4401, reason: 'REVOKED' });
  expect(code(await app.query(lost, me))).toBe('UNAUTHENTICATED');
});
