// The page that may hold a demo credential: who is given one, and that its tour is true.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { parse, validate } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { schema } from '../../src/schema/index.js';
import { createGraphiQL, type DemoCredentials } from '../../src/transport/graphiql.js';

const demo: DemoCredentials = {
  devices: ['ana-phone', 'ben-laptop'],
  defaultDevice: 'ben-laptop',
  credentialOf: (device) => Promise.resolve(`tm_${device}.secret.0`),
};
let server: http.Server;
let port: number;

beforeAll(async () => {
  const [withDemo, without] = [createGraphiQL(demo), createGraphiQL(null)];
  server = http.createServer((req, res) => {
    const url = new URL(req.url ?? '', 'http://x');
    if (url.pathname === '/script') void withDemo.script(res);
    else void (url.pathname === '/plain' ? without : withDemo).page(req, res, url.searchParams);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

/** fetch does not let a Host be chosen. */
async function get(path: string, headers: http.OutgoingHttpHeaders = {}) {
  const sent = http.get({ port, host: '127.0.0.1', path, headers, agent: false });
  const [res] = (await once(sent, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  return { headers: res.headers, body, text: body.toString() };
}

it('a browser on this machine gets a credential: the default device’s, or that of ?as=', async () => {
  expect((await get('/')).text).toContain('Bearer tm_ben-laptop.secret.0');
  expect((await get('/?as=ana-phone')).text).toContain('Bearer tm_ana-phone.secret.0');
  const unknown = await get('/?as=%3C/script%3E%3Cscript%3Ealert(1)');
  expect(unknown.text).toContain('Bearer tm_ben-laptop.secret.0');
  expect(unknown.text).not.toContain('alert(1)');
});

it.each([
  ['another Host: a DNS name pointed at this machine', { host: 'evil.example.org' }],
  ['a Host that only begins like ours', { host: 'localhost.example.org:4000' }],
  ['a proxy before us', { 'x-forwarded-for': '203.0.113.9' }],
  ['a proxy of the newer kind', { forwarded: 'for=203.0.113.9' }],
])('%s: no credential', async (_, headers) => {
  const { text } = await get('/?as=ana-phone', headers);
  expect(text).toContain('Tidemark');
  expect(text).not.toContain('tm_');
});

it('without the demo, or when HOST is open to others, no credential', async () => {
  expect((await get('/plain?as=ana-phone')).text).not.toContain('tm_');
});

it('the page is never stored, framed or read by another page', async () => {
  const { headers } = await get('/', { origin: 'http://localhost:5173' });
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
    'content-security-policy': "frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
  });
  expect(headers).not.toHaveProperty('access-control-allow-origin');
});

it('every operation of the tour fits the schema', async () => {
  const { text } = await get('/');
  const { defaultQuery } = JSON.parse(/const options = (.+);/u.exec(text)?.[1] ?? '') as { defaultQuery: string };
  expect(validate(schema, parse(defaultQuery))).toEqual([]);
});

it('its script is one compressed file, nothing of it from elsewhere', async () => {
  const { headers, body } = await get('/script');
  expect(headers['content-encoding']).toBe('gzip');
  expect(body.length).toBeLessThan(4_000_000);
  expect(gunzipSync(body).toString()).toContain('renderYogaGraphiQL');
  expect((await get('/')).text).not.toMatch(/(?:src|href)="https?:/u);
});
