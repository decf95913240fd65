// The gate over docker-compose.yml must be seen to fail: each break of the real files is told.
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { findProblems } from '../scripts/check-compose.js';

const read = (name: string) => readFile(new URL(`../${name}`, import.meta.url), 'utf8');
const [compose, dockerfile, config] = await Promise.all(
  ['docker-compose.yml', 'Dockerfile', 'src/config.ts'].map(read),
);
const problems = (change: (text: string) => string, changeImage = (text: string) => text) =>
  findProblems(change(compose ?? ''), changeImage(dockerfile ?? ''), config ?? '').join('\n');
const same = (text: string) => text;

it('the files as they are have no problem', () => {
  expect(problems(same)).toBe('');
});

it.each([
  ['REDIS_URL:', 'REDIS_ADDRESS:', 'knows no REDIS_ADDRESS'],
  ['redis://redis:', 'redis://cache:', 'REDIS_URL does not lead to redis'],
  ['@postgres:5432', '@database:5432', 'DATABASE_URL does not lead to postgres'],
  ['${GRAPHIQL:-true}', '${GRAPHIQL:-maybe}', 'GRAPHIQL: '],
  ['${SERVICE_KEYS:?at least 43 characters, in .env}', 'a'.repeat(43), 'SERVICE_KEYS is in the file'],
  ['  node2:', '  node3:', 'services'],
  ['127.0.0.1:4001:4000', '127.0.0.1:4000:4000', 'node2: its port is not'],
  ['    healthcheck:\n      test: [CMD, redis-cli', '    healthchecks:\n      test: [CMD, redis-cli', 'healthchecks'],
  ['\nvolumes:', '\nvolume: {}\nvolumes:', 'volume'],
  ['    redis:\n      condition', '    postgres:\n      condition', 'node1: does not wait for redis'],
])('%s → %s is told', (from, to, told) => {
  expect(compose).toContain(from);
  expect(problems((text) => text.replace(from, to))).toContain(told);
});

it.each([
  ['USER node', '', 'runs as root'],
  ['/healthz', '/', 'node1: has no health check'],
  ['HOST=', 'HOSTNAME=', 'knows no HOSTNAME'],
])('in the Dockerfile %s → %s is told', (from, to, told) => {
  expect(dockerfile).toContain(from);
  expect(problems(same, (text) => text.replace(from, to))).toContain(told);
});
