// The buckets behind the rate limits, on a clock of the test's own.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Buckets } from '../../src/domain/rate-limits.js';

const connects = { rate: 5, perMs: 60_000, burst: 20 };

test('[P3] after the burst one connect comes back every twelve seconds, not twenty after four minutes', () => {
  const buckets = new Buckets(connects);
  for (let n = 0; n < 20; n++) {
    expect(buckets.waitMs('phone', 1, 0)).toBe(0);
    buckets.take('phone', 1, 0);
  }
  expect(buckets.waitMs('phone', 1, 0)).toBe(12_000);
  expect(buckets.waitMs('phone', 1, 11_000)).toBe(1_000);
  expect(buckets.waitMs('phone', 3, 12_000)).toBe(24_000);
  buckets.take('phone', 1, 12_000);
  expect(buckets.waitMs('phone', 1, 12_000)).toBe(12_000);
  expect(buckets.waitMs('laptop', 1, 12_000)).toBe(0);
  buckets.giveBack('phone', 1);
  expect(buckets.waitMs('phone', 1, 12_000)).toBe(0);
});

const rate = fc.record({
  rate: fc.integer({ min: 1, max: 1_000 }),
  perMs: fc.constantFrom(1_000, 60_000),
  burst: fc.integer({ min: 1, max: 200 }),
});
const steps = fc.array(
  fc.record({ afterMs: fc.double({ min: 0, max: 5_000, noNaN: true }), points: fc.integer({ min: 1, max: 250 }) }),
  {
    maxLength: 100,
  },
);

test('[P3] whoever waits as long as told passes, not earlier, and no window of time lets more through than the rate and one burst', () => {
  fc.assert(
    fc.property(rate, steps, (limit, asked) => {
      const buckets = new Buckets(limit);
      const taken: { readonly at: number; readonly points: number }[] = [];
      let now = 0;
      for (const { afterMs, points } of asked) {
        now += afterMs;
        const waitMs = buckets.waitMs('k', points, now);
        if (waitMs > 0.002) expect(buckets.waitMs('k', points, now + waitMs - 0.002)).toBeGreaterThan(0);
        now += Math.ceil(waitMs);
        expect(buckets.waitMs('k', points, now)).toBe(0);
        buckets.take('k', points, now);
        taken.push({ at: now, points: Math.min(points, limit.burst) });
      }
      for (const [index, first] of taken.entries()) {
        let sum = 0;
        for (const { at, points } of taken.slice(index)) {
          sum += points;
          expect(sum).toBeLessThanOrEqual(limit.burst + ((at - first.at) * limit.rate) / limit.perMs + 0.01);
        }
      }
    }),
  );
});

test('[P3] who has not asked for a while is forgotten', () => {
  const buckets = new Buckets(connects);
  for (let n = 0; n < 100_000; n++) buckets.take(`device ${String(n)}`, 1, n * 100);
  expect(buckets.size).toBeLessThan(2_000);
});
