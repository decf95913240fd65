// Arguments that do not fit, operation by operation: what test/domain/input.pg.test.ts asks with each.
import { channelCases } from './bad-input-channel.js';
import { long, many, pages, required, seqs, shorts, type Case, type Values } from './bad-values.js';

/** no generation of any database */
const noLife = '00000000-0000-4000-8000-000000000000';
const content = 'contentType: TEXT, content: { text: "hi" }';

export const cases: readonly Case[] = [
  {
    name: 'markRead(seq)',
    query: 'mutation ($c: ID!, $v: Seq!) { markRead(conv: $c, seq: $v) { read } }',
    values: seqs,
  },
  { name: 'ack(seq)', query: 'mutation ($c: ID!, $v: Seq!) { ack(conv: $c, seq: $v) { delivered } }', values: seqs },
  ...(['markReadMany', 'ackMany'] as const).flatMap((name): Case[] => [
    {
      name: `${name}(seq)`,
      query: `mutation ($c: ID!, $v: Seq!) { ${name}(items: [{ conv: $c, seq: 0 }, { conv: $c, seq: $v }]) { items { head } } }`,
      values: seqs,
    },
    {
      name: `${name}(items)`,
      query: `mutation ($v: [Position!]!) { ${name}(items: $v) { items { head } } }`,
      values: [
        [many(201).map((id) => ({ conv: id, seq: 0 })), 200],
        [[{ conv: 'x' }]],
        [[{ seq: 1 }]],
        [[{ conv: 'x', seq: 0, more: 1 }]],
        [[null]],
        [null],
      ],
    },
  ]),
  {
    name: 'markAllRead(asOf)',
    query: 'mutation ($v: String!) { markAllRead(asOf: $v) { complete } }',
    values: [
      ...['', 'x', '/', '1:1:', `${noLife}/`, `${noLife}/1:1:`, `${noLife}/1:1:1`, `${noLife}/5:3:`].map(
        (token): Values[number] => [token],
      ),
      [`${noLife}/${'9'.repeat(30)}:1:`],
      [`${noLife}/1:9:3,2`],
      [`${noLife}/1:1:\u0000`],
      [long(70_000)],
      [3],
      [null],
    ],
  },
  {
    name: 'recall(seq)',
    query: 'mutation ($c: ID!, $v: Seq!) { recall(conv: $c, seq: $v) { conv { id } } }',
    values: seqs,
  },
  {
    name: 'send(quote)',
    query: `mutation ($c: ID!, $v: Seq) { send(input: { conv: $c, clientId: "q", ${content}, quote: $v }) { duplicate } }`,
    values: [...seqs.filter(([v]) => v !== null), [99]],
  },
  {
    name: 'send(markReadUpTo)',
    query: `mutation ($c: ID!, $v: Seq) { send(input: { conv: $c, clientId: "q", ${content}, markReadUpTo: $v }) { duplicate } }`,
    values: seqs.filter(([v]) => v !== null),
  },
  {
    name: 'send(clientId)',
    query: `mutation ($c: ID!, $v: String!) { send(input: { conv: $c, clientId: $v, ${content} }) { duplicate } }`,
    values: required(shorts(64)),
  },
  {
    name: 'send(mentions)',
    query: `mutation ($c: ID!, $v: [ID!]) { send(input: { conv: $c, clientId: "q", ${content}, mentions: $v }) { duplicate } }`,
    values: [[many(51), 50], [[long(65)], 64], [['']], [[null]]],
  },
  {
    name: 'send(contentType)',
    query:
      'mutation ($c: ID!, $v: ContentType!) { send(input: { conv: $c, clientId: "q", contentType: $v, content: { text: "hi" } }) { duplicate } }',
    values: [['GROUP_CREATE'], ['text'], [1], [null]],
  },
  {
    name: 'unreadAudit(after)',
    query: 'query ($c: ID!, $v: Seq) { unreadAudit(conv: $c, after: $v) { unread } }',
    values: seqs.filter(([v]) => v !== null),
  },
  {
    name: 'unreadAudit(first)',
    query: 'query ($c: ID!, $v: Int) { unreadAudit(conv: $c, first: $v) { unread } }',
    values: pages(1_000),
  },
  {
    name: 'unreadAudit(user)',
    query: 'query ($c: ID!, $v: ID) { unreadAudit(conv: $c, user: $v) { unread } }',
    values: shorts(64),
    as: 'service',
  },
  {
    name: 'history(last)',
    query: 'query ($c: ID!, $v: Int) { history(conv: $c, last: $v) { nodes { id } } }',
    values: pages(200),
  },
  {
    name: 'history(first)',
    query: 'query ($c: ID!, $v: Int) { history(conv: $c, first: $v) { nodes { id } } }',
    values: pages(200),
  },
  {
    name: 'history(first and last)',
    query: 'query ($c: ID!, $v: Int) { history(conv: $c, first: $v, last: $v) { nodes { id } } }',
    values: [[1], [0]],
  },
  {
    name: 'history(before)',
    query: 'query ($c: ID!, $v: String) { history(conv: $c, before: $v) { nodes { id } } }',
    values: [['x'], [''], ['-1'], ['1.5'], [' 1'], ['9'.repeat(30)], ['٣'], [3.5]],
  },
  {
    name: 'history(after)',
    query: 'query ($c: ID!, $v: String) { history(conv: $c, after: $v) { nodes { id } } }',
    values: [['x'], [''], ['1e3']],
  },
  {
    name: 'members(first)',
    query: 'query ($c: ID!, $v: Int) { conv(id: $c) { members(first: $v) { nodes { role } } } }',
    values: pages(200),
  },
  {
    name: 'members(after)',
    query: 'query ($c: ID!, $v: String) { conv(id: $c) { members(after: $v) { nodes { role } } } }',
    values: shorts(64).slice(1),
  },
  ...channelCases,
  { name: 'convs(first)', query: 'query ($v: Int) { convs(first: $v) { nodes { id } } }', values: pages(1_000) },
  {
    name: 'convs(after)',
    query: 'query ($v: String) { convs(after: $v) { nodes { id } } }',
    values: [['x'], [''], ['MTIzIG5v'], [Buffer.from('1 \u0000').toString('base64url')], ['9'.repeat(400)]],
  },
  {
    name: 'convs(orderBy)',
    query: 'query ($v: ConvOrder) { convs(orderBy: $v) { nodes { id } } }',
    values: [['NEWEST'], [1]],
  },
  { name: 'changes(first)', query: 'query ($v: Int) { changes(first: $v) { cursor } }', values: pages(200) },
  {
    name: 'changes(after)',
    query: 'query ($v: String) { changes(after: $v) { cursor } }',
    values: [
      'x',
      '',
      '7',
      ' 7',
      `${noLife} `,
      `${noLife} -1`,
      `${noLife} 1.5`,
      `${noLife} 7 7`,
      `${noLife} \u0000`,
    ].map((text) => [Buffer.from(text).toString('base64url')]),
  },
  {
    name: 'sync(after)',
    query: 'query ($c: ID!, $v: Seq!) { sync(from: [{ conv: $c, after: $v }]) { complete } }',
    values: seqs,
  },
  {
    name: 'sync(budget)',
    query: 'query ($c: ID!, $v: Int) { sync(from: [{ conv: $c, after: 0 }], budget: $v) { complete } }',
    values: pages(1_000),
  },
  {
    name: 'sync(epoch)',
    query: 'query ($c: ID!, $v: Int) { sync(from: [{ conv: $c, after: 0, epoch: $v }]) { complete } }',
    values: [[0], [-1], ['1'], [2 ** 31]],
  },
  {
    name: 'sync(from)',
    query: 'query ($v: [SyncFrom!]!) { sync(from: $v) { complete } }',
    values: [
      [many(1_001).map((id) => ({ conv: id, after: 0 })), 1_000],
      [[{ conv: 'x' }]],
      [[{ conv: 'x', after: 0, more: 1 }]],
      [null],
      [[null]],
    ],
  },
  {
    name: 'addMembers(users)',
    query: 'mutation ($c: ID!, $v: [ID!]!) { addMembers(conv: $c, users: $v) { duplicate } }',
    values: [
      [many(201), 200],
      [['']],
      [[long(65)], 64],
      [['nobody']],
      [['cho', 'nobody']],
      [['cho', 'a\u0000']],
      [[]],
      [null],
    ],
  },
  {
    name: 'removeMember(user)',
    query: 'mutation ($c: ID!, $v: ID!) { removeMember(conv: $c, user: $v) { duplicate } }',
    values: required(shorts(64)),
  },
  {
    name: 'setConvSettings(muted)',
    query: 'mutation ($c: ID!, $v: Boolean!) { setConvSettings(conv: $c, muted: $v) { duplicate } }',
    values: [['true'], [1], [null]],
  },
  {
    name: 'createConv(clientId)',
    query: 'mutation ($v: String!) { createConv(input: { clientId: $v, type: GROUP, members: [] }) { duplicate } }',
    values: required(shorts(64)),
  },
  {
    name: 'createConv(title)',
    query:
      'mutation ($v: String) { createConv(input: { clientId: "c", type: GROUP, members: [], title: $v }) { duplicate } }',
    values: shorts(64),
  },
  {
    name: 'createConv(members)',
    query: 'mutation ($v: [ID!]!) { createConv(input: { clientId: "c", type: GROUP, members: $v }) { duplicate } }',
    values: [[many(201), 200], [['nobody']], [['']], [null]],
  },
  {
    name: 'reinstall(installId)',
    query: 'mutation ($v: String!) { reinstall(installId: $v) { credential } }',
    values: required(shorts(64)),
  },
  {
    name: 'revokeDevice(deviceId)',
    query: 'mutation ($v: ID!) { revokeDevice(deviceId: $v) { credential } }',
    values: [[''], [long(65)], ['a b'], ['a\u0000'], ['nobody'], [null]],
  },
  {
    name: 'registerDevice(deviceId)',
    query: 'mutation ($v: ID) { registerDevice(input: { user: "ana", deviceId: $v }) { credential } }',
    values: [[''], [long(65)], ['a b'], ['é'], ['a\u0000']],
    as: 'service',
  },
  {
    name: 'registerDevice(user)',
    query: 'mutation ($v: ID) { registerDevice(input: { user: $v }) { credential } }',
    values: [...required(shorts(64)), ['nobody']],
    as: 'service',
  },
  {
    name: 'registerDevice(name)',
    query: 'mutation ($v: String) { registerDevice(input: { user: "ana", name: $v }) { credential } }',
    values: shorts(64),
    as: 'service',
  },
  {
    name: 'upsertUser(id)',
    query: 'mutation ($v: ID!) { upsertUser(input: { id: $v }) { user { id } } }',
    values: required(shorts(64)),
    as: 'service',
  },
  {
    name: 'upsertUser(name)',
    query: 'mutation ($v: String) { upsertUser(input: { id: "ana", name: $v }) { user { id } } }',
    values: shorts(64),
    as: 'service',
  },
  {
    name: 'upsertUser(avatarUrl)',
    query: 'mutation ($v: String) { upsertUser(input: { id: "ana", avatarUrl: $v }) { user { id } } }',
    values: [...shorts(512), ['javascript:alert(1)'], ['no url'], ['ftp://a.example']],
    as: 'service',
  },
];
