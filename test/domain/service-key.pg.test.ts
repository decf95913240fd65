// Who may ask what: every field of the API, for the service key by itself, for it acting as a user, and for nobody (I6, I7).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { act } from '../support/contacts.js';
import { group } from '../support/groups.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let scene: { owned: string; joined: string; open: string; closed: string; device: string; asOf: string };

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** Ana owns one group, is a member of another, and may join a third. */
async function setUp(): Promise<void> {
  const [ana, ben] = [world.asUser('ana'), world.asUser('ben')];
  const make = async (by: Actor, input: object) => (await by.createConv({ ...input })).conv.id;
  const device = 'ana-device'; // registered anew each time: one slot
  await world.device('ana', device);
  scene = {
    owned: await make(ana, { members: ['ben'], joinPolicy: 'APPROVAL' }),
    closed: await make(ben, { joinPolicy: 'APPROVAL' }),
    joined: await make(ben, { members: ['ana'] }),
    open: await make(ben, { joinPolicy: 'OPEN' }),
    device,
    asOf: (await ana.badge()).asOf,
  };
  await ana.send(scene.owned, 'hello'); // seq 3
  // requests that wait both ways, and a contact; from any state
  await world.service.ask('mutation { upsertUser(input: { id: "eve" }) { user { id } } }');
  await group(world.asUser('eve'), 'requestJoin', { conv: scene.owned });
  await act(ana, 'requestContact', 'eve');
  await act(world.asUser('eve'), 'requestContact', 'ana');
  await world.app.deps.store.pool
    .query(`INSERT INTO contact_requests (from_id, to_id, state, from_change_no, to_change_no)
    VALUES ('ana', 'ben', 'PENDING', 0, 0), ('ben', 'ana', 'PENDING', 0, 0)
    ON CONFLICT (from_id, to_id) DO UPDATE SET state = 'PENDING', handled_at = NULL`);
}

type Outcome = 'ok' | 'FORBIDDEN' | 'BAD_USER_INPUT';
type Case = readonly [byItself: Outcome, asUser: Outcome, document: () => string];
const no = 'FORBIDDEN';
const quoted = (value: string) => JSON.stringify(value);

const queries: Readonly<Record<string, Case>> = {
  viewer: [no, 'ok', () => '{ viewer { id device { id } devices { id } badge { unread } } }'],
  convs: [no, 'ok', () => '{ convs { nodes { id delivered } } }'],
  conv: [no, 'ok', () => `{ conv(id: ${quoted(scene.owned)}) { id } }`],
  badge: [no, 'ok', () => '{ badge { unread } }'],
  sync: [no, 'ok', () => `{ sync(from: [{ conv: ${quoted(scene.owned)}, after: 0 }]) { complete } }`],
  changes: [no, 'ok', () => '{ changes { cursor } }'],
  history: [no, 'ok', () => `{ history(conv: ${quoted(scene.owned)}) { nodes { id } } }`],
  contacts: [no, 'ok', () => '{ contacts { nodes { id } } }'],
  joinRequests: [no, 'ok', () => '{ joinRequests { nodes { id } } }'],
  contactRequests: [no, 'ok', () => '{ contactRequests { nodes { id } } }'],
  unreadAudit: [no, 'ok', () => `{ unreadAudit(conv: ${quoted(scene.owned)}) { seqs } }`],
};
const at = (rest = '') => `(conv: ${quoted(scene.owned)}${rest})`;
const mutations: Readonly<Record<string, Case>> = {
  upsertUser: ['ok', no, () => `{ upsertUser(input: { id: "cho" }) { user { id } } }`],
  registerDevice: ['BAD_USER_INPUT', 'ok', () => `{ registerDevice(input: {}) { credential } }`],
  reinstall: [no, no, () => `{ reinstall(installId: "x") { credential } }`],
  revokeDevice: ['ok', 'ok', () => `{ revokeDevice(deviceId: ${quoted(scene.device)}) { credential } }`],
  createConv: [
    'BAD_USER_INPUT',
    'ok',
    () => `{ createConv(input: { clientId: "${fresh()}", type: GROUP, members: [] }) { conv { id } } }`,
  ],
  addMembers: ['ok', 'ok', () => `{ addMembers${at(', users: ["cho"]')} { conv { id } } }`],
  removeMember: ['ok', 'ok', () => `{ removeMember${at(', user: "ben"')} { conv { id } } }`],
  join: [no, 'ok', () => `{ join(conv: ${quoted(scene.open)}) { conv { joined } } }`],
  leave: [no, 'ok', () => `{ leave(conv: ${quoted(scene.joined)}) { conv { joined } } }`],
  setConvSettings: [no, 'ok', () => `{ setConvSettings${at(', muted: true')} { conv { muted } } }`],
  markRead: [no, 'ok', () => `{ markRead${at(', seq: 1')} { read } }`],
  markReadMany: [
    no,
    'ok',
    () => `{ markReadMany(items: [{ conv: ${quoted(scene.owned)}, seq: 1 }]) { items { read } } }`,
  ],
  markAllRead: [no, 'ok', () => `{ markAllRead(asOf: ${quoted(scene.asOf)}) { complete } }`],
  ackMany: [no, no, () => `{ ackMany(items: [{ conv: ${quoted(scene.owned)}, seq: 1 }]) { items { delivered } } }`],
  ack: [no, no, () => `{ ack${at(', seq: 1')} { delivered } }`],
  send: [
    no,
    'ok',
    () =>
      `{ send(input: { conv: ${quoted(scene.owned)}, clientId: "${fresh()}", contentType: TEXT, content: { text: "x" } }) { event { via } } }`,
  ],
  recall: [no, 'ok', () => `{ recall${at(', seq: 3')} { event { seq } } }`],
  updateConv: ['ok', 'ok', () => `{ updateConv(input: { conv: ${quoted(scene.owned)}, title: "x" }) { duplicate } }`],
  setRole: ['ok', 'ok', () => `{ setRole${at(', user: "ben", role: ADMIN')} { duplicate } }`],
  transferConv: ['ok', 'ok', () => `{ transferConv${at(', user: "ben"')} { duplicate } }`],
  dissolveConv: ['ok', 'ok', () => `{ dissolveConv${at()} { duplicate } }`],
  banConv: ['ok', no, () => `{ banConv${at(', banned: true')} { duplicate } }`],
  muteAll: ['ok', 'ok', () => `{ muteAll${at(', muted: true')} { duplicate } }`],
  muteMember: ['ok', 'ok', () => `{ muteMember${at(', user: "ben"')} { duplicate } }`],
  unmuteMember: ['ok', 'ok', () => `{ unmuteMember${at(', user: "ben"')} { duplicate } }`],
  pinEvent: ['ok', 'ok', () => `{ pinEvent${at(', seq: 3')} { duplicate } }`],
  unpinEvent: ['ok', 'ok', () => `{ unpinEvent${at(', seq: 3')} { duplicate } }`],
  setNickname: [no, 'ok', () => `{ setNickname${at(', nickname: "x"')} { duplicate } }`],
  requestJoin: [no, 'ok', () => `{ requestJoin(conv: ${quoted(scene.closed)}) { request { state } } }`],
  approveJoin: ['ok', 'ok', () => `{ approveJoin${at(', user: "eve"')} { request { state } } }`],
  refuseJoin: ['ok', 'ok', () => `{ refuseJoin${at(', user: "eve"')} { request { state } } }`],
  signal: [no, 'ok', () => `{ signal${at(', contentType: TYPING')} { users } }`],
  broadcast: ['ok', no, () => '{ broadcast(content: { a: 1 }) { content } }'],
  requestContact: [no, 'ok', () => '{ requestContact(user: "cho") { request { state } } }'],
  acceptContact: [no, 'ok', () => '{ acceptContact(user: "ben") { contact { active } } }'],
  refuseContact: [no, 'ok', () => '{ refuseContact(user: "ben") { request { state } } }'],
  withdrawContact: [no, 'ok', () => '{ withdrawContact(user: "ben") { request { state } } }'],
  deleteContact: [no, 'ok', () => '{ deleteContact(user: "ben") { contact { active } } }'],
  blockContact: [no, 'ok', () => '{ blockContact(user: "cho") { contact { blocked } } }'],
  unblockContact: [no, 'ok', () => '{ unblockContact(user: "cho") { contact { blocked } } }'],
  updateContact: [no, 'ok', () => '{ updateContact(user: "eve", muted: true) { contact { muted } } }'],
};
const subscriptions: Readonly<Record<string, Case>> = {
  message: [no, no, () => '{ message { resync } }'],
  readChanged: [no, no, () => '{ readChanged { resync } }'],
  badgeChanged: [no, no, () => '{ badgeChanged { unread } }'],
  hints: [no, no, () => '{ hints { __typename } }'],
};

interface Who {
  readonly credential: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}
/** 'ok', or the code of the refusal. */
async function outcomeOf({ credential, headers = {} }: Who, kind: string, document: string): Promise<string> {
  const accept = kind === 'subscription' ? 'text/event-stream' : 'application/json';
  const response = await world.app.post(credential, { query: `${kind} ${document}` }, { ...headers, accept });
  return /"code":"(\w+)"/u.exec(await response.text())?.[1] ?? 'ok';
}

const roots = { query: queries, mutation: mutations, subscription: subscriptions };
const cases = Object.entries(roots).flatMap(([kind, fields]) =>
  Object.entries(fields).map(([field, [byItself, asUser, document]]) => ({ kind, field, byItself, asUser, document })),
);

test('[I6] the table names every field of the API', async () => {
  type Type = { fields: { name: string }[] };
  const { data } = await world.app.query<{ __schema: Record<string, Type> }>(
    null,
    '{ __schema { query: queryType { ...f } mutation: mutationType { ...f } subscription: subscriptionType { ...f } } } fragment f on __Type { fields { name } }',
  );
  const found = Object.entries(data?.__schema ?? {}).flatMap(([kind, { fields }]) =>
    fields.map(({ name }) => `${kind} ${name}`),
  );
  expect(cases.map(({ kind, field }) => `${kind} ${field}`).toSorted()).toEqual(found.toSorted());
});

describe.each(cases)('$kind $field', ({ kind, byItself, asUser, document }) => {
  test(`[I6] [I7] by itself ${byItself}, as a user ${asUser}, without a credential UNAUTHENTICATED`, async () => {
    await setUp();
    expect(await outcomeOf({ credential: null }, kind, document())).toBe('UNAUTHENTICATED');
    expect(await outcomeOf(world.service, kind, document())).toBe(byItself);
    await setUp();
    expect(await outcomeOf(world.asUser('ana'), kind, document())).toBe(asUser);
  });
});

test('[I6] by itself it registers devices, makes conversations and asks audits for users whom it names', async () => {
  const { credential } = (
    await world.service.ask<{ registerDevice: { credential: string } }>(
      'mutation { registerDevice(input: { user: "ben" }) { credential } }',
    )
  ).registerDevice;
  const { conv } = await world.service.createConv({ owner: 'ana', members: ['ben'] });
  expect(conv).toMatchObject({ head: 2, joined: false, myRole: null, read: 0, unread: 0, delivered: 0 });
  expect(await world.service.audit(conv.id, { user: 'ana' })).toMatchObject({ unread: 0, head: 2 });
  expect((await world.asUser('ana').conv(conv.id)).myRole).toBe('OWNER');
  expect(await outcomeOf({ credential }, 'query', '{ badge { unread } }')).toBe('ok');
});

test('[I6] acting as a user it has the user’s rights and no more: no device, via SERVICE', async () => {
  await setUp();
  const [ana, cho] = [world.asUser('ana'), world.asUser('cho')];
  expect((await ana.send(scene.owned, 'hi')).event.via).toBe('SERVICE');
  expect((await ana.conv(scene.owned)).delivered).toBe(0);
  const { owned } = scene;
  const asked = [
    () => cho.conv(owned),
    () => cho.send(owned, 'x'),
    () => cho.markRead(owned, 1),
    () => cho.audit(owned),
  ];
  for (const ask of asked) await expect(ask()).rejects.toMatchObject({ code: 'NOT_MEMBER' });
  await expect(group(world.asUser('ben'), 'muteAll', { conv: scene.owned, muted: true })).rejects.toMatchObject({
    code: 'FORBIDDEN',
  });
  await expect(ana.audit(scene.owned, { user: 'ben' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
  await expect(ana.createConv({ owner: 'ana' })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  await expect(ana.ask('mutation { registerDevice(input: { user: "ben" }) { credential } }')).rejects.toMatchObject({
    code: 'FORBIDDEN',
  });
  await expect(world.asUser('nobody').badge()).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
});

test('[I6] only over HTTP, only without an Origin, and no other credential acts as a user', async () => {
  const key = world.app.serviceKey;
  expect(await world.app.socket(key).closed).toEqual({ code: 4401, reason: 'UNAUTHENTICATED' });
  const upsert = '{ upsertUser(input: { id: "cho" }) { user { id } } }';
  expect(await outcomeOf({ credential: key, headers: { origin: world.app.url } }, 'mutation', upsert)).not.toBe('ok');
  const device = await world.device('ben');
  const headers = { 'x-tidemark-user': 'ana' };
  expect(await outcomeOf({ credential: device.credential, headers }, 'query', '{ badge { unread } }')).toBe(
    'FORBIDDEN',
  );
  expect(await outcomeOf({ credential: null, headers }, 'query', '{ badge { unread } }')).toBe('FORBIDDEN');
  expect(await outcomeOf({ credential: `${key.slice(0, -1)}_` }, 'mutation', upsert)).toBe('UNAUTHENTICATED');
});
