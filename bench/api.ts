// Requests a second over HTTP on 16 connections to a server process of its own, against { __typename } on the same server:
// what HTTP and GraphQL cost by themselves. Each connection is a device of another user.
import { Agent, request } from 'node:http';
import { startTidemark } from '../test/support/process.js';
import { convId, credentialOf, firstMessageSeq, loadLogs, memberOf } from './logs.js';
import { alternate, Findings, mediansOf, rateOf, type Bench } from './measure.js';

const lanes = 16;
const synced = 100;
const baseline = '__typename';

type Post = (credential: string | null, query: string, variables?: Readonly<Record<string, unknown>>) => Promise<void>;

const documents = {
  markRead: 'mutation ($conv: ID!, $seq: Seq!) { markRead(conv: $conv, seq: $seq) { read unread } }',
  markReadBadge:
    'mutation ($conv: ID!, $seq: Seq!) { markRead(conv: $conv, seq: $seq) { read unread badge { id unread } } }',
  ack: 'mutation ($conv: ID!, $seq: Seq!) { ack(conv: $conv, seq: $seq) { delivered } }',
  send: 'mutation ($input: SendInput!) { send(input: $input) { duplicate event { id seq } } }',
  convs: 'query ($first: Int!) { convs(first: $first) { nodes { id title head read unread delivered } } }',
  sync: `query ($from: [SyncFrom!]!, $budget: Int!) {
    sync(from: $from, budget: $budget) { items { events { id seq sender { id } text } through hasMore } } }`,
};

type Operation = (credential: string, n: number, lane: number) => Promise<void>;

export const api: Bench = async ({ convs, messages, members, rounds, turnMs }, server) => {
  await using postgres = await server.database('api', 1);
  const people = Math.max(members, lanes);
  const sizes = { convs, messages, members: people, users: people };
  await loadLogs(postgres.pool, sizes);
  // what the service can do, not what it lets one device do
  const unlimited = Object.fromEntries(
    ['SEND', 'READ', 'ACK'].flatMap((kind) => [
      [`${kind}_RATE`, '1000000'] as const,
      [`${kind}_BURST`, '1000000'] as const,
    ]),
  );
  const env = { DATABASE_URL: postgres.url, NODE_ENV: 'production', ...unlimited };
  await using tidemark = startTidemark(['serve'], env);
  const url = (await tidemark.until(/"url":"(http:[^"]+)"/u))[1] ?? '';
  const agent = new Agent({ keepAlive: true, maxSockets: lanes });
  const credentials = Array.from({ length: lanes }, (_, lane) => credentialOf(memberOf(sizes, 0, lane)));
  const turn = (work: Operation) => () =>
    rateOf({ lanes, ms: turnMs }, (n, lane) => work(credentials[lane] ?? '', n, lane));
  const turns = Object.entries(operations(poster(`${url}/graphql`, agent), { convs, messages }));
  const measured = await alternate(rounds, Object.fromEntries(turns.map(([name, work]) => [name, turn(work)])));
  agent.destroy();
  const found = new Findings();
  const { [baseline]: bare = Number.NaN, ...ours } = mediansOf(measured);
  found.row(baseline, bare, 'requests/s');
  for (const [name, value] of Object.entries(ours)) {
    found.row(name, value, 'requests/s');
    found.against(name, baseline, value, bare);
  }
  return found;
};

function operations(post: Post, { convs, messages }: { convs: number; messages: number }): Record<string, Operation> {
  // each lane goes round the conversations, one message further each time, so that every position moves
  const rising = () => {
    const taken = new Map<number, number>();
    return (lane: number) => {
      const n = taken.get(lane) ?? 0;
      taken.set(lane, n + 1);
      return { conv: convId(n % convs), seq: firstMessageSeq + (Math.floor(n / convs) % messages) };
    };
  };
  const [nextRead, nextAck] = [rising(), rising()];
  let sent = 0;
  const message = (n: number) => {
    const clientId = `bench-${String(++sent)}`;
    return { conv: convId(n % convs), clientId, contentType: 'TEXT', content: { text: 'x'.repeat(80) } };
  };
  const somewhere = (n: number) => (n * 7_919) % Math.max(1, messages - synced);
  return {
    [baseline]: () => post(null, '{ __typename }'),
    '__typename, signed in': (who) => post(who, '{ __typename }'),
    markRead: (who, _, lane) => post(who, documents.markRead, nextRead(lane)),
    'markRead with the badge': (who, _, lane) => post(who, documents.markReadBadge, nextRead(lane)),
    ack: (who, _, lane) => post(who, documents.ack, nextAck(lane)),
    send: (who, n) => post(who, documents.send, { input: message(n) }),
    [`convs of ${String(convs)}`]: (who) => post(who, documents.convs, { first: convs }),
    [`sync of ${String(synced)} events`]: (who, n) =>
      post(who, documents.sync, { from: [{ conv: convId(n % convs), after: somewhere(n) }], budget: synced }),
  };
}

/** node:http, not fetch: the client must not be what is measured. */
function poster(url: string, agent: Agent): Post {
  return (credential, query, variables = {}) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ query, variables });
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': Buffer.byteLength(body),
        ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
      };
      const asked = request(url, { method: 'POST', agent, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          if (answer.statusCode === 200 && !text.includes('"errors"')) resolve();
          else reject(new Error(`${query.slice(0, 40)}: ${text.slice(0, 300)}`));
        });
      });
      asked.on('error', reject);
      asked.end(body);
    });
}
