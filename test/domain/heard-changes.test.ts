// What a node knows to have missed, from change numbers alone (H5).
import { describe, expect, test } from 'vitest';
import { HeardChanges } from '../../src/domain/heard-changes.js';
import type { UserId } from '../../src/model.js';
import { conv, convChange, message } from '../hints/samples.js';

const ben = 'ben' as UserId;
const told = (change: number) => ({ ...convChange(conv(1)), change });

/** A node that listens for ben, and a database where ben's number can be set. */
async function listening(number: number) {
  const database = { number };
  const heard = new HeardChanges(() => Promise.resolve(new Map([[ben, database.number]])));
  await heard.begin(ben);
  return {
    heard,
    hear: (...changes: readonly number[]) => {
      for (const change of changes) heard.hint(ben, told(change));
    },
    /** A scan while the database is at `now`: what it finds to have been missed. */
    scan: (now: number) => {
      const [missed] = heard.missed();
      heard.advance(new Map([[ben, now]]));
      return missed === undefined ? [] : missed.numbers;
    },
  };
}

test('[H5] a lost number is missed by the second scan after it, once, also when later ones were heard', async () => {
  const { hear, scan } = await listening(7);
  hear(8, 10, 11);
  expect(scan(11)).toEqual([]); // 9 may be on its way
  expect(scan(11)).toEqual([9]);
  expect(scan(11)).toEqual([]);
});

test('[H5] what comes late but before the second scan is not missed, in whatever order', async () => {
  const { hear, scan } = await listening(0);
  hear(3, 1);
  expect(scan(4)).toEqual([]);
  hear(4, 2);
  expect(scan(6)).toEqual([]);
  hear(6);
  expect(scan(6)).toEqual([5]);
});

test('[H5] what was before the listening began is nobody’s loss', async () => {
  const { scan } = await listening(1_000_000);
  expect(scan(1_000_000)).toEqual([]);
  expect(scan(1_000_001)).toEqual([]);
  expect(scan(1_000_001)).toEqual([1_000_001]);
});

test('[H5] a hint that comes while the beginning is looked up counts', async () => {
  let answer: (numbers: Map<UserId, number>) => void = () => undefined;
  const heard = new HeardChanges(() => new Promise((resolve) => (answer = resolve)));
  const begun = heard.begin(ben);
  heard.hint(ben, told(5));
  heard.hint(ben, told(4));
  answer(new Map([[ben, 3]]));
  await begun;
  heard.advance(new Map([[ben, 5]]));
  expect(heard.missed()).toEqual([]);
});

test('[H5] hints without a number say nothing', async () => {
  const { heard, scan } = await listening(1);
  heard.hint(ben, message(conv(1), 2));
  expect(scan(2)).toEqual([]);
  expect(scan(2)).toEqual([2]);
});

test('[H5] a resync heals what the scan before it had seen, nothing later', async () => {
  const { heard, scan } = await listening(0);
  expect(scan(3)).toEqual([]);
  heard.resync(ben);
  expect(scan(5)).toEqual([]);
  expect(scan(5)).toEqual([4, 5]);
});

test('[H5] [L8] after a restore counting begins anew, from lower numbers', async () => {
  const { heard, hear, scan } = await listening(50);
  hear(52);
  heard.restored();
  expect(scan(20)).toEqual([]);
  hear(22);
  expect(scan(22)).toEqual([]);
  expect(scan(22)).toEqual([21]);
});

describe('what is remembered', () => {
  test('[H5] is nothing while nothing is lost', async () => {
    const { hear, scan } = await listening(0);
    for (let round = 0; round < 100; round++) {
      hear(...Array.from({ length: 500 }, (_, n) => 500 * round + n + 1));
      expect(scan(500 * (round + 1))).toEqual([]);
    }
  });

  test('[H5] beyond a bound it becomes a resync, and counting goes on from there', async () => {
    const { hear, scan } = await listening(0);
    hear(...Array.from({ length: 3_000 }, (_, n) => n + 2)); // 1 was lost
    expect(scan(3_001)).toBeNull();
    expect(scan(3_002)).toEqual([]);
    expect(scan(3_002)).toEqual([3_002]);
  });

  test('[H5] too many lost ones become a resync', async () => {
    const { scan } = await listening(0);
    expect(scan(100_000)).toEqual([]);
    expect(scan(100_000)).toBeNull();
    expect(scan(100_000)).toEqual([]);
  });

  test('[H5] ends with the last listener, and begins anew with the next', async () => {
    const { heard, scan } = await listening(0);
    await heard.begin(ben);
    heard.end(ben);
    expect(heard.users).toEqual([ben]);
    heard.end(ben);
    heard.end(ben);
    expect(heard.users).toEqual([]);
    heard.hint(ben, told(1));
    expect(scan(9)).toEqual([]);
  });
});
