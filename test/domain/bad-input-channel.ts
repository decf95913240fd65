// Arguments that do not fit, of contacts, groups and requests to join: see bad-input.ts.
import { long, pages, required, seqs, shorts, type Case, type Values } from './bad-values.js';

export const channelCases: readonly Case[] = [
  {
    name: 'signal(contentType)',
    query: 'mutation ($c: ID!, $v: SignalType!) { signal(conv: $c, contentType: $v) { users } }',
    values: [['TEXT'], ['CALL'], [1], [null]],
  },
  {
    name: 'signal(content)',
    query: 'mutation ($c: ID!, $v: JSON) { signal(conv: $c, contentType: CALL, content: $v) { users } }',
    values: [['x'], [1], [[1]], [null], [{ a: 'a\u0000' }], [{ a: 'x'.repeat(8_192) }, 8_192]],
  },
  {
    name: 'signal(content of TYPING)',
    query: 'mutation ($c: ID!, $v: JSON) { signal(conv: $c, contentType: TYPING, content: $v) { users } }',
    values: [[{}], ['x']],
  },
  {
    name: 'signal(to)',
    query: 'mutation ($c: ID!, $v: [ID!]) { signal(conv: $c, contentType: TYPING, to: $v) { users } }',
    values: [[Array.from({ length: 17 }, (_, n) => `u${String(n)}`), 16], [['']], [[null]]],
  },
  {
    name: 'broadcast(content)',
    query: 'mutation ($v: JSON!) { broadcast(content: $v) { content } }',
    values: [['x'], [1], [[1]], [null], [{ a: 'x'.repeat(8_192) }, 8_192]],
    as: 'service',
  },
  ...(
    [
      'acceptContact',
      'refuseContact',
      'withdrawContact',
      'deleteContact',
      'blockContact',
      'unblockContact',
      'requestContact',
      'updateContact',
    ] as const
  ).map((name): Case => ({
    name: `${name}(user)`,
    query: `mutation ($v: ID!) { ${name}(user: $v) { contact { id } } }`,
    values: required([...shorts(64), ['nobody'], ['ana']]),
  })),
  {
    name: 'requestContact(text)',
    query: 'mutation ($v: String) { requestContact(user: "ben", text: $v) { contact { id } } }',
    values: shorts(255),
  },
  ...['muted', 'pinned'].map((name): Case => ({
    name: `updateContact(${name})`,
    query: `mutation ($v: Boolean) { updateContact(user: "ben", ${name}: $v) { contact { id } } }`,
    values: [['yes'], [1]],
  })),
  {
    name: 'updateContact(remark)',
    query: 'mutation ($v: String) { updateContact(user: "ben", remark: $v) { contact { id } } }',
    values: [...shorts(16), ['of a stranger']],
  },
  ...(
    [
      ['title', 64],
      ['notice', 2_048],
      ['avatarUrl', 512],
    ] as const
  ).map(([field, max]): Case => ({
    name: `updateConv(${field})`,
    query: `mutation ($c: ID!, $v: String) { updateConv(input: { conv: $c, ${field}: $v }) { duplicate } }`,
    values:
      field === 'notice'
        ? [[''], ['  '], [long(max + 1), max], ['a\u0000'], ['\ud800'], [{}]]
        : [...shorts(max), ...(field === 'avatarUrl' ? ([['javascript:x'], ['x']] satisfies Values) : [])],
  })),
  {
    name: 'updateConv(joinPolicy)',
    query: 'mutation ($c: ID!, $v: JoinPolicy) { updateConv(input: { conv: $c, joinPolicy: $v }) { duplicate } }',
    values: [['CLOSED'], [1]],
  },
  ...['transferConv', 'muteMember', 'unmuteMember', 'setRole'].map((name): Case => ({
    name: `${name}(user)`,
    query: `mutation ($c: ID!, $v: ID!) { ${name}(conv: $c, user: $v${name === 'setRole' ? ', role: ADMIN' : ''}) { duplicate } }`,
    values: required([...shorts(64), ['nobody']]),
  })),
  {
    name: 'setRole(role)',
    query: 'mutation ($c: ID!, $v: Role!) { setRole(conv: $c, user: "ben", role: $v) { duplicate } }',
    values: [['OWNER'], ['KING'], [null]],
  },
  {
    name: 'muteMember(until)',
    query: 'mutation ($c: ID!, $v: DateTime) { muteMember(conv: $c, user: "ben", until: $v) { duplicate } }',
    values: [['tomorrow'], ['2000-01-01T00:00:00Z'], [1], [true], [{}]],
  },
  {
    name: 'muteAll(muted)',
    query: 'mutation ($c: ID!, $v: Boolean!) { muteAll(conv: $c, muted: $v) { duplicate } }',
    values: [['yes'], [1], [null]],
  },
  {
    name: 'banConv(banned)',
    query: 'mutation ($c: ID!, $v: Boolean!) { banConv(conv: $c, banned: $v) { duplicate } }',
    values: [['yes'], [1], [null]],
    as: 'service',
  },
  ...['pinEvent', 'unpinEvent'].map((name): Case => ({
    name: `${name}(seq)`,
    query: `mutation ($c: ID!, $v: Seq!) { ${name}(conv: $c, seq: $v) { duplicate } }`,
    values: name === 'pinEvent' ? [...seqs, [0], [1], [99]] : seqs,
  })),
  {
    name: 'setNickname(nickname)',
    query: 'mutation ($c: ID!, $v: String) { setNickname(conv: $c, nickname: $v) { duplicate } }',
    values: shorts(64),
  },
  {
    name: 'requestJoin(text)',
    query: 'mutation ($c: ID!, $v: String) { requestJoin(conv: $c, text: $v) { request { state } } }',
    values: [...shorts(255), ['a member']],
  },
  ...['approveJoin', 'refuseJoin'].map((name): Case => ({
    name: `${name}(user)`,
    query: `mutation ($c: ID!, $v: ID!) { ${name}(conv: $c, user: $v) { request { state } } }`,
    values: required([...shorts(64), ['nobody']]),
  })),
  {
    name: 'joinRequests(first)',
    query: 'query ($v: Int) { joinRequests(first: $v) { nodes { id } } }',
    values: pages(200),
  },
  {
    name: 'joinRequests(after)',
    query: 'query ($v: String) { joinRequests(after: $v) { nodes { id } } }',
    values: [['x'], [''], ['MTIzIG5v'], [Buffer.from('1 \u0000').toString('base64url')]],
  },
  {
    name: 'joinRequests(state)',
    query: 'query ($v: RequestState) { joinRequests(state: $v) { nodes { id } } }',
    values: [['OPEN'], [1]],
  },
  { name: 'contacts(first)', query: 'query ($v: Int) { contacts(first: $v) { nodes { id } } }', values: pages(200) },
  {
    name: 'contacts(after)',
    query: 'query ($v: String) { contacts(after: $v) { nodes { id } } }',
    values: shorts(64),
  },
  {
    name: 'contactRequests(first)',
    query: 'query ($v: Int) { contactRequests(first: $v) { nodes { id } } }',
    values: pages(200),
  },
  {
    name: 'contactRequests(after)',
    query: 'query ($v: String) { contactRequests(after: $v) { nodes { id } } }',
    values: shorts(64),
  },
  {
    name: 'contactRequests(state)',
    query: 'query ($v: RequestState) { contactRequests(state: $v) { nodes { id } } }',
    values: [['OPEN'], [1]],
  },
];
