// What the log says of requests and sockets, and what it never says.
import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLog } from '../../src/log.js';
import { startApp } from '../support/app.js';
import * as documents from '../support/documents.js';
import { readMetrics, seriesOf } from '../support/metrics.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor;
let ben: Actor;
let conv: string;
const logged: string[] = [];

type Line = Readonly<Record<string, unknown>>;
const lines = (): Line[] => logged.map((line) => JSON.parse(line) as Line);
const line = (fits: Line) =>
  expect.poll(() => lines().filter((one) => Object.entries(fits).every(([key, value]) => one[key] === value)));

// everything, so that what must never be there is looked for in all of it
const log = createLog({ level: 'trace', to: { write: (written: string) => void logged.push(written) } });

beforeAll(async () => {
  world = await startWorld({ config: { metricsPort: 0 }, overrides: { log } });
  [ana, ben] = await Promise.all([world.device('ana', 'ana-phone'), world.device('ben', 'ben-phone')]);
  conv = (await ana.createConv({ members: ['ben'] })).conv.id;
});
afterAll(() => world[Symbol.asyncDispose]());

const ask = (requestId: string, query: string, credential: string | null = ana.credential) =>
  world.app.post(credential, { query }, { 'x-request-id': requestId });

it('a request is one line: id, method, path, root fields, status, duration', async () => {
  await ask('plain', 'query Mine { badge { unread } v: viewer { id } ...F } fragment F on Query { viewer { id } }');
  await line({ requestId: 'plain' }).toMatchObject([
    { msg: 'request', method: 'POST', path: '/graphql', status: 200, fields: ['badge', 'viewer'] },
  ]);
  const [found] = lines().filter(({ requestId }) => requestId === 'plain');
  expect(found?.['ms']).toBeTypeOf('number');
  expect(Object.keys(found ?? {}).toSorted()).toEqual(
    ['fields', 'level', 'method', 'ms', 'msg', 'path', 'pid', 'requestId', 'status', 'time'].toSorted(),
  );
  expect(found?.['level']).toBe(30);
});

it.each([
  ['refused', '{ conv(id: "nope") { id } }', 200, ['conv'], ['NOT_MEMBER']],
  ['no-graphql', '{ conv(', 200, [], ['GRAPHQL_PARSE_FAILED']],
  ['no-field', '{ nothing }', 200, [], ['GRAPHQL_VALIDATION_FAILED']],
] as const)('[P2] its line holds the codes of its errors: %s', async (id, query, status, fields, codes) => {
  await ask(id, query);
  await line({ requestId: id }).toMatchObject([{ status, fields, codes }]);
});

it('of a path that does not exist only that is told, and probes are told at debug', async () => {
  const id = { 'x-request-id': 'nowhere' };
  await fetch(`${world.app.url}/${ana.credential}?query=secret`, { headers: id });
  await line({ requestId: 'nowhere' }).toMatchObject([{ path: null, status: 404, level: 30 }]);
  await fetch(`${world.app.url}/healthz`, { headers: { 'x-request-id': 'probe' } });
  await line({ requestId: 'probe' }).toMatchObject([{ path: '/healthz', level: 20 }]);
});

it('[P5] a socket is two lines, the last with the code it was closed with and what ran on it', async () => {
  logged.length = 0;
  const live = await world.app.subscribe(ana.credential, 'subscription Mine { badgeChanged { unread } }');
  await live.next();
  await live.socket.subscribe('{ badge { unread } }').next();
  await live.socket.close();
  await line({ msg: 'socket closed' }).toMatchObject([
    { code: 1000, path: '/graphql', fields: ['badgeChanged'], codes: ['BAD_USER_INPUT'] },
  ]);
  const [opened, closed] = lines().filter(({ msg }) => String(msg).startsWith('socket '));
  expect(opened).toMatchObject({ msg: 'socket open', requestId: closed?.['requestId'] });
  const refused = world.app.socket('tm_nobody.secret.1');
  await refused.closed;
  await line({ msg: 'socket closed', code: 4401 }).toHaveLength(1);
});

it('an event stream is one line when it ends', async () => {
  logged.length = 0;
  const stream = await world.app.sse(ana.credential, 'subscription { readChanged { resync } }');
  await stream.next();
  stream.close();
  await line({ msg: 'request' }).toMatchObject([{ status: 200, fields: ['readChanged'], cut: true }]);
});

it('[P2] no credential, text, variable or document reaches the log or the metrics, whatever happens, and no id the metrics', async () => {
  logged.length = 0;
  const secrets = {
    text: 'zq-text',
    literal: 'zq-literal',
    variable: 'zq-variable',
    alias: 'zq_alias',
    header: 'zq-header',
  };
  const live = await world.app.subscribe(
    ben.credential,
    'subscription { hints { __typename ... on MessageHint { event { text } } } }',
  );
  await live.next();
  const stream = await world.app.sse(ben.credential, 'subscription { message { event { text content } } }');
  await stream.next();

  const { event } = await ana.send(conv, secrets.text, { mentions: ['ben'] });
  await Promise.all([live.next(), stream.next()]);
  await ben.sync([{ conv, after: 0 }]);
  await ben.history(conv);
  await ben.markRead(conv, event.seq);
  await ana.recall(conv, event.seq);
  const { credential: renewed } = await ben.reinstall('again');
  await live.socket.closed;

  // wrong in every way: the form of an argument, of a variable, of a document, of a body, of a credential
  await ask('wrong-1', `query ${secrets.alias} { ${secrets.alias}: conv(id: "${secrets.literal}") { id } }`);
  await ask('wrong-2', `{ convs(first: "${secrets.literal}") { asOf } }`);
  await ask('wrong-3', `{ ${secrets.alias} ("${secrets.literal}"`);
  await world.app.query(ana.credential, documents.markRead, { conv, seq: secrets.variable });
  await world.app.query(ana.credential, documents.send, { input: { [secrets.variable]: secrets.variable } });
  await world.app.post(ana.credential, `{"query": "${secrets.literal}`);
  await world.app.post(
    ana.credential,
    { query: '{ __typename }' },
    { 'x-request-id': ana.credential, cookie: secrets.header },
  );
  await world.app.query(`${ana.credential}${secrets.header}`, '{ viewer { id } }');
  const get = new URLSearchParams({ query: `{ conv(id: "${secrets.literal}") { id } }` });
  await fetch(`${world.app.url}/graphql?${get.toString()}`, { headers: { authorization: ana.credential } });
  const socket = world.app.socket(null, { payload: { authorization: secrets.header } });
  await socket.closed;

  // unexpected, with a driver that quotes the failing row
  const { pool } = world.app.deps.store;
  await pool.query(`ALTER TABLE events ADD CONSTRAINT unlucky CHECK (content::text NOT LIKE '%unlucky%')`);
  await expect(ana.send(conv, `${secrets.text} unlucky`)).rejects.toMatchObject({ code: 'INTERNAL_SERVER_ERROR' });
  await expect
    .poll(() => lines().find(({ level }) => level === 50)?.['err'])
    .toMatchObject({
      message: expect.stringMatching(/unlucky/u) as string,
    });

  const everything = `${logged.join('')}${seriesOf(await readMetrics(world.app)).join('\n')}`;
  expect(lines().length).toBeGreaterThan(15);
  const secretOf = (credential: string) => credential.split('.')[1] ?? '';
  const never = [...Object.values(secrets), world.app.serviceKey, secretOf(ana.credential), secretOf(renewed)];
  for (const secret of never) expect(everything).not.toContain(secret);
  const series = seriesOf(await readMetrics(world.app)).join('\n');
  for (const id of ['ana', 'ana-phone', 'ben-phone', conv]) expect(series).not.toMatch(new RegExp(`"${id}"`, 'u'));
});

it('the password of a Redis that refuses it does not reach the log', async () => {
  logged.length = 0;
  const refusing = net.createServer((socket) => {
    socket.on('data', () => socket.write('-WRONGPASS invalid username-password pair\r\n')).on('error', () => undefined);
  });
  await once(refusing.listen(0, '127.0.0.1'), 'listening');
  const { port } = refusing.address() as net.AddressInfo;
  try {
    await using app = await startApp({
      config: { redisUrl: `redis://:zq-redis@127.0.0.1:${String(port)}` },
      overrides: { log },
    });
    await expect.poll(() => logged.join('')).toContain('WRONGPASS');
    expect(app.deps.bus.state).toBe('down');
  } finally {
    refusing.close();
  }
  expect(logged.join('')).not.toContain('zq-redis');
});
