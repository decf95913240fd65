// Which pages may ask, and what counts as this machine.
import { expect, it } from 'vitest';
import { createOriginRule, isLoopbackAddress, isLoopbackHost } from '../../src/transport/origins.js';

it.each([
  ['http://localhost:5173', true],
  ['https://localhost', true],
  ['http://127.0.0.1:4000', true],
  ['http://[::1]:4000', true],
  [undefined, true],
  ['null', false],
  ['', false],
  ['https://app.example.org', false],
  ['http://localhost.example.org', false],
  ['http://127.0.0.1.example.org', false],
  ['http://10.0.0.1', false],
])('[P4] in demo mode %s may ask: %s', (origin, expected) => {
  expect(createOriginRule(null, true)(origin)).toBe(expected);
});

it('[P4] a list is exact, also in demo mode; no list outside of it means none', () => {
  const listed = createOriginRule(['https://app.example.org'], true);
  expect(listed('https://app.example.org')).toBe(true);
  expect(listed('https://app.example.org:8443')).toBe(false);
  expect(listed('http://localhost:4000')).toBe(false);
  expect(createOriginRule(null, false)('http://localhost:4000')).toBe(false);
  expect(createOriginRule([], true)('http://localhost:4000')).toBe(false);
});

it.each([
  ['localhost', true],
  ['localhost:4000', true],
  ['127.0.0.1:4000', true],
  ['[::1]:4000', true],
  ['LOCALHOST:1', true],
  ['localhost.', false],
  ['localhost.example.org', false],
  ['127.0.0.1.example.org:4000', false],
  ['example.org', false],
  ['localhost:4000@example.org', false],
  ['', false],
  [undefined, false],
])('Host %s is this machine: %s', (host, expected) => {
  expect(isLoopbackHost(host)).toBe(expected);
});

it.each([
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['10.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  [undefined, false],
])('the peer %s is this machine: %s', (address, expected) => {
  expect(isLoopbackAddress(address)).toBe(expected);
});
