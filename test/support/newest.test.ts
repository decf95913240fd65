// The rule of the cache guard by itself.
import { expect, test } from 'vitest';
import { ageOf, Newest } from './newest.js';

test.each([
  ['nothing was known', { head: 3, read: 1 }, undefined, 'newer'],
  ['the same again', { head: 3, read: 1 }, { head: 3, read: 1 }, 'newer'],
  ['a message later', { head: 4, read: 1 }, { head: 3, read: 1 }, 'newer'],
  ['a read earlier', { head: 3, read: 1 }, { head: 3, read: 3 }, 'older'],
  ['both earlier', { head: 2, read: 1 }, { head: 3, read: 3 }, 'older'],
  ['a message later, a read earlier', { head: 4, read: 1 }, { head: 3, read: 3 }, 'unlike'],
] as const)('[H8] %s', (_, seen, known, age) => {
  expect(ageOf(seen, known)).toBe(age);
});

test('[H8] what is older or unlike leaves the known one', () => {
  const newest = new Newest<{ head: number; read: number }>();
  for (const seen of [
    { head: 3, read: 3 },
    { head: 4, read: 1 },
    { head: 2, read: 0 },
  ])
    newest.take('c', seen);
  expect(newest.get('c')).toEqual({ head: 3, read: 3 });
});
