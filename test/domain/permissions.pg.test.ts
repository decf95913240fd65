// Who may do what, cell by cell (M7), and that a foreign conversation cannot be told from a missing one (M4).
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dump } from '../support/dump.js';
import { group, type GroupVerb } from '../support/groups.js';
import { outcomeOf } from '../support/outcome.js';
import { fresh, Refused, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, cho: Actor, stranger: Actor, applicant: Actor;

const sql = (text: string, ...values: unknown[]) => world.app.deps.store.pool.query(text, values);
const setRole = (conv: string, user: string, role: string) =>
  sql('UPDATE members SET role = $3::role WHERE conv_id = $1 AND user_id = $2', conv, user, role);
const everything = () => dump(world.app.deps.store.pool);

beforeAll(async () => {
  world = await startWorld();
  await world.users('other', 'admin', 'applicant');
  [ana, ben, cho] = [await world.device('ana'), await world.device('ben'), await world.device('cho')];
  [stranger, applicant] = [await world.device('other'), await world.device('applicant')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** The only item of a batch, whose error is thrown as that of a single operation. */
async function oneOf(asked: Promise<{ items: readonly { error: { code: string; message: string } | null }[] }>) {
  const { items } = await asked;
  for (const { error } of items) if (error) throw new Refused(error.message, error);
}
type Act = (actor: Actor, conv: string) => Promise<unknown>;
const roles = ['OWNER', 'ADMIN', 'MEMBER', 'former', 'stranger', 'service'] as const;
type Role = (typeof roles)[number];
/** ana owns it; ben plays the role where he is in it; cho is a member, admin another admin. Head 3. */
async function newGroup(role: Role, joinPolicy = 'INVITE'): Promise<{ conv: string; actor: Actor }> {
  const { conv } = await ana.createConv({ members: ['ben', 'cho', 'admin'], joinPolicy });
  await setRole(conv.id, 'admin', 'ADMIN');
  if (role === 'ADMIN') await setRole(conv.id, 'ben', 'ADMIN');
  if (role === 'former') await ana.removeMember(conv.id, 'ben');
  else await ana.send(conv.id, 'hi');
  if (joinPolicy === 'APPROVAL') await group(applicant, 'requestJoin', { conv: conv.id });
  return {
    conv: conv.id,
    actor: { OWNER: ana, ADMIN: ben, MEMBER: ben, former: ben, stranger, service: world.service }[role],
  };
}

const [F, N, B] = ['FORBIDDEN', 'NOT_MEMBER', 'BAD_USER_INPUT'];
type Row = [string, string, string, string, string, string];
const table: { action: string; act: Act; policy?: string; may: Row }[] = [
  { action: 'addMembers', act: (a, c) => a.addMembers(c, ['other']), may: ['ok', 'ok', F, N, N, 'ok'] },
  { action: 'addMembers of who is in it', act: (a, c) => a.addMembers(c, ['cho']), may: ['ok', 'ok', F, N, N, 'ok'] },
  {
    action: 'addMembers under APPROVAL',
    policy: 'APPROVAL',
    act: (a, c) => a.addMembers(c, ['other']),
    may: ['ok', 'ok', 'ok', N, N, 'ok'],
  },
  { action: 'removeMember of a MEMBER', act: (a, c) => a.removeMember(c, 'cho'), may: ['ok', 'ok', F, N, N, 'ok'] },
  { action: 'removeMember of an ADMIN', act: (a, c) => a.removeMember(c, 'admin'), may: ['ok', F, F, N, N, 'ok'] },
  { action: 'removeMember of the OWNER', act: (a, c) => a.removeMember(c, 'ana'), may: [B, F, F, N, N, F] },
  {
    action: 'removeMember of nobody there',
    act: (a, c) => a.removeMember(c, 'nobody'),
    may: ['ok', 'ok', F, N, N, 'ok'],
  },
  { action: 'leave', act: (a, c) => a.leave(c), may: [F, 'ok', 'ok', 'ok', N, F] },
  { action: 'join under OPEN', policy: 'OPEN', act: (a, c) => a.join(c), may: ['ok', 'ok', 'ok', 'ok', 'ok', F] },
  { action: 'join under INVITE', act: (a, c) => a.join(c), may: ['ok', 'ok', 'ok', N, N, F] },
  { action: 'join under APPROVAL', policy: 'APPROVAL', act: (a, c) => a.join(c), may: ['ok', 'ok', 'ok', N, N, F] },
  { action: 'requestJoin', act: (a, conv) => group(a, 'requestJoin', { conv }), may: [B, B, B, N, N, F] },
  {
    action: 'requestJoin under OPEN',
    policy: 'OPEN',
    act: (a, conv) => group(a, 'requestJoin', { conv }),
    may: [B, B, B, B, B, F],
  },
  {
    action: 'requestJoin under APPROVAL',
    policy: 'APPROVAL',
    act: (a, conv) => group(a, 'requestJoin', { conv }),
    may: [B, B, B, 'ok', 'ok', F],
  },
  ...(['approveJoin', 'refuseJoin'] as const).map((name) => ({
    action: name,
    policy: 'APPROVAL',
    act: (a: Actor, conv: string) => group(a, name, { conv, user: 'applicant' }),
    may: ['ok', 'ok', F, N, N, 'ok'] as Row,
  })),
  ...(
    [
      ['updateConv', { input: { notice: 'new' } }, ['ok', 'ok', F, N, N, 'ok']],
      ['setRole', { user: 'cho', role: 'ADMIN' }, ['ok', F, F, N, N, 'ok']],
      ['transferConv', { user: 'cho' }, ['ok', F, F, N, N, 'ok']],
      ['dissolveConv', {}, ['ok', F, F, N, N, 'ok']],
      ['banConv', { banned: true }, [F, F, F, F, F, 'ok']],
      ['muteAll', { muted: true }, ['ok', 'ok', F, N, N, 'ok']],
      ['muteMember', { user: 'cho' }, ['ok', 'ok', F, N, N, 'ok']],
      ['muteMember', { user: 'admin' }, [F, F, F, N, N, F]],
      ['muteMember', { user: 'ana' }, [F, F, F, N, N, F]],
      ['unmuteMember', { user: 'cho' }, ['ok', 'ok', F, N, N, 'ok']],
      ['pinEvent', { seq: 3 }, ['ok', 'ok', F, N, N, 'ok']],
      ['unpinEvent', { seq: 3 }, ['ok', 'ok', F, N, N, 'ok']],
      ['setNickname', { nickname: 'x' }, ['ok', 'ok', 'ok', N, N, F]],
    ] as [GroupVerb, Record<string, unknown>, Row][]
  ).map(([verb, args, may]) => ({
    action: `${verb} ${JSON.stringify(args)}`,
    act: (a: Actor, conv: string) =>
      group(a, verb, verb === 'updateConv' ? { input: { conv, notice: 'new' } } : { conv, ...args }),
    may,
  })),
  {
    action: 'signal',
    act: (a, conv) => a.ask('mutation ($conv: ID!) { signal(conv: $conv, contentType: TYPING) { users } }', { conv }),
    may: ['ok', 'ok', 'ok', N, N, F],
  },
  { action: 'send', act: (a, c) => a.send(c, 'hi'), may: ['ok', 'ok', 'ok', N, N, F] },
  { action: 'markRead', act: (a, c) => a.markRead(c, 3), may: ['ok', 'ok', 'ok', 'ok', N, F] },
  { action: 'ack', act: (a, c) => a.ack(c, 3), may: ['ok', 'ok', 'ok', 'ok', N, F] },
  {
    action: 'markReadMany',
    act: (a, c) => oneOf(a.markReadMany([{ conv: c, seq: 3 }])),
    may: ['ok', 'ok', 'ok', 'ok', N, F],
  },
  { action: 'ackMany', act: (a, c) => oneOf(a.ackMany([{ conv: c, seq: 3 }])), may: ['ok', 'ok', 'ok', 'ok', N, F] },
  { action: 'setConvSettings', act: (a, c) => a.setMuted(c, true), may: ['ok', 'ok', 'ok', 'ok', N, F] },
  { action: 'history', act: (a, c) => a.history(c), may: ['ok', 'ok', 'ok', 'ok', N, F] },
  { action: 'unreadAudit', act: (a, c) => a.audit(c), may: ['ok', 'ok', 'ok', 'ok', N, F] },
  { action: 'unreadAudit of another', act: (a, c) => a.audit(c, { user: 'cho' }), may: [F, F, F, F, F, 'ok'] },
];
const cells = table.flatMap(({ action, act, policy, may }) =>
  roles.map((role, n) => ({ action, act, policy, role, code: may[n] ?? '' })),
);

describe('permissions', () => {
  test.each(cells)('[M7] [M3] [I6] GROUP: $action by $role: $code', async ({ act, policy, role, code }) => {
    const { conv, actor } = await newGroup(role, policy);
    const before = code === 'ok' ? null : await everything();
    expect(await outcomeOf(act(actor, conv))).toBe(code);
    if (before) expect(await everything()).toEqual(before);
  });

  const directActions = table.filter(
    ({ action, policy }) =>
      !policy &&
      /^(addMembers|removeMember of a MEMBER|leave|join|send$|updateConv|setRole|dissolveConv|muteAll|pinEvent|transferConv|setNickname)/u.test(
        action,
      ),
  );
  const directCells = directActions.flatMap(({ action, act }) =>
    (['MEMBER', 'stranger', 'service'] as const).map((role) => {
      const refusal = role === 'stranger' ? N : F;
      return { action, act, role, code: action === 'send' && role === 'MEMBER' ? 'ok' : refusal };
    }),
  );
  test.each(directCells)('[M7] DIRECT: $action by $role: $code', async ({ act, role, code }) => {
    const { conv } = await ben.createConv({ type: 'DIRECT', members: ['cho'] });
    const before = await everything();
    expect(await outcomeOf(act({ MEMBER: ben, stranger, service: world.service }[role], conv.id))).toBe(code);
    if (code !== 'ok') expect(await everything()).toEqual(before);
  });

  test('[M7] a removed admin who comes back is an ordinary member', async () => {
    const { conv } = await newGroup('ADMIN');
    await ana.removeMember(conv, 'ben');
    expect((await ana.addMembers(conv, ['ben'])).myRole).toBe('OWNER');
    expect((await ben.conv(conv)).myRole).toBe('MEMBER');
    expect(await outcomeOf(ben.addMembers(conv, ['other']))).toBe(F);
  });
});

describe('one answer', () => {
  type Operation = [string, string, Record<string, unknown>];
  const operations: Operation[] = [
    ['conv', 'query ($conv: ID!) { conv(id: $conv) { id } }', {}],
    [
      'sync',
      'query ($conv: ID!) { sync(from: [{ conv: $conv, after: 3 }]) { complete items { conv { id } through head hasMore error { code message } } } }',
      {},
    ],
    ['history', 'query ($conv: ID!) { history(conv: $conv) { nodes { id } } }', {}],
    ['unreadAudit', 'query ($conv: ID!) { unreadAudit(conv: $conv) { unread } }', {}],
    ['markRead', 'mutation ($conv: ID!) { markRead(conv: $conv, seq: 3) { read } }', {}],
    ['markRead far ahead', 'mutation ($conv: ID!) { markRead(conv: $conv, seq: 99) { read } }', {}],
    ['ack', 'mutation ($conv: ID!) { ack(conv: $conv, seq: 3) { delivered } }', {}],
    ['ack far ahead', 'mutation ($conv: ID!) { ack(conv: $conv, seq: 99) { delivered } }', {}],
    [
      'markReadMany',
      'mutation ($conv: ID!) { markReadMany(items: [{ conv: $conv, seq: 3 }]) { items { conv { id } read unread head error { code message } } } }',
      {},
    ],
    [
      'markReadMany far ahead',
      'mutation ($conv: ID!) { markReadMany(items: [{ conv: $conv, seq: 99 }]) { items { read unread head error { code message } } } }',
      {},
    ],
    [
      'ackMany',
      'mutation ($conv: ID!) { ackMany(items: [{ conv: $conv, seq: 3 }]) { items { conv { id } delivered head error { code message } } } }',
      {},
    ],
    ['recall', 'mutation ($conv: ID!) { recall(conv: $conv, seq: 3) { conv { id } } }', {}],
    [
      'send',
      'mutation ($conv: ID!, $key: String!) { send(input: { conv: $conv, clientId: $key, contentType: TEXT, content: { text: "hi" } }) { duplicate } }',
      { key: 'k' },
    ],
    [
      'send with a read',
      'mutation ($conv: ID!) { send(input: { conv: $conv, clientId: "k", contentType: TEXT, content: { text: "hi" }, markReadUpTo: 99 }) { duplicate } }',
      {},
    ],
    ['addMembers', 'mutation ($conv: ID!) { addMembers(conv: $conv, users: ["ana", "nobody"]) { duplicate } }', {}],
    ['removeMember', 'mutation ($conv: ID!) { removeMember(conv: $conv, user: "ana") { duplicate } }', {}],
    ['join', 'mutation ($conv: ID!) { join(conv: $conv) { duplicate } }', {}],
    ['leave', 'mutation ($conv: ID!) { leave(conv: $conv) { duplicate } }', {}],
    ['joinRequests', 'query ($conv: ID!) { joinRequests(conv: $conv) { nodes { id } } }', {}],
    ...['approveJoin', 'refuseJoin'].map((name): Operation => [
      name,
      `mutation ($conv: ID!) { ${name}(conv: $conv, user: "ana") { request { id } } }`,
      {},
    ]),
    ['requestJoin', 'mutation ($conv: ID!) { requestJoin(conv: $conv) { request { id } } }', {}],
    ['updateConv', 'mutation ($conv: ID!) { updateConv(input: { conv: $conv, title: "x" }) { duplicate } }', {}],
    ['setRole', 'mutation ($conv: ID!) { setRole(conv: $conv, user: "ana", role: ADMIN) { duplicate } }', {}],
    ...['transferConv', 'muteMember', 'unmuteMember'].map((name): Operation => [
      name,
      `mutation ($conv: ID!) { ${name}(conv: $conv, user: "ana") { duplicate } }`,
      {},
    ]),
    ['dissolveConv', 'mutation ($conv: ID!) { dissolveConv(conv: $conv) { duplicate } }', {}],
    ['muteAll', 'mutation ($conv: ID!) { muteAll(conv: $conv, muted: true) { duplicate } }', {}],
    ['pinEvent', 'mutation ($conv: ID!) { pinEvent(conv: $conv, seq: 3) { duplicate } }', {}],
    ['unpinEvent', 'mutation ($conv: ID!) { unpinEvent(conv: $conv, seq: 3) { duplicate } }', {}],
    ['signal', 'mutation ($conv: ID!) { signal(conv: $conv, contentType: TYPING) { users } }', {}],
    ['setNickname', 'mutation ($conv: ID!) { setNickname(conv: $conv, nickname: "x") { duplicate } }', {}],
    ['setConvSettings', 'mutation ($conv: ID!) { setConvSettings(conv: $conv, muted: true) { duplicate } }', {}],
  ];
  test.each(operations)(
    '[M4] %s: a foreign conversation answers as a missing one and as no id at all',
    async (name, document, variables) => {
      const { conv: group } = await newGroup('OWNER');
      const direct = (await ana.createConv({ type: 'DIRECT', members: ['ben'] })).conv.id;
      const before = await everything();
      const answer = (conv: string) => stranger.app.query(stranger.credential, document, { ...variables, conv });
      const missing = await answer(randomUUID());
      // a list of what the viewer is shown has nothing of it
      expect(JSON.stringify(missing)).toContain(name === 'joinRequests' ? '"nodes":[]' : 'NOT_MEMBER');
      for (const conv of [
        group,
        direct,
        group.toUpperCase(),
        'no id',
        '',
        `${group} `,
        '00000000-0000-0000-0000-000000000000',
        fresh(),
      ]) {
        expect(await answer(conv), conv).toEqual(missing);
      }
      expect(await everything()).toEqual(before);
    },
  );

  test('[M4] the list of operations has every one that takes a conversation', async () => {
    const document = `{ __schema { queryType { ...args } mutationType { ...args } } }
      fragment args on __Type { fields { name args { name type { ofType { name ofType { ofType { name } } } } } } }`;
    type Field = { name: string; args: { name: string }[] };
    type Root = { fields: Field[] };
    const { __schema } = await ana.ask<{ __schema: { queryType: Root; mutationType: Root } }>(document);
    const fields = [...__schema.queryType.fields, ...__schema.mutationType.fields];
    // banConv is the service's alone
    const taking = fields.filter(
      ({ name, args }) =>
        ['conv', 'sync', 'send', 'updateConv', 'markReadMany', 'ackMany'].includes(name) ||
        args.some((arg) => arg.name === 'conv'),
    );
    expect(
      taking.map(({ name }) => name).filter((name) => !operations.some(([op]) => op === name) && name !== 'banConv'),
    ).toEqual([]);
  });

  test('[M4] sync fails alone where the viewer is a stranger, and goes on elsewhere', async () => {
    const { conv } = await newGroup('OWNER');
    const own = (await stranger.createConv({})).conv.id;
    const { items } = await stranger.sync([conv, own, randomUUID()].map((id) => ({ conv: id, after: 0 })));
    expect(items.map(({ error, events }) => [error?.code, events.length])).toEqual([
      [N, 0],
      [undefined, 1],
      [N, 0],
    ]);
    expect(await outcomeOf(cho.history(conv))).toBe('ok');
  });
});
