// The gate by itself: who is inside, who waits, and for how long.
import { expect, it, vi } from 'vitest';
import { Metrics } from '../../src/metrics.js';
import { Admission, Gate, TryLater } from '../../src/transport/admission.js';

const isIn = (entering: Promise<unknown>) =>
  Promise.race([entering.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

it('[P6] so many are inside, so many wait in their order, and whoever comes after these is told at once', async () => {
  const gate = new Gate({ atOnce: 2, maxWaiting: 2, maxWaitMs: 10_000 });
  const [first, second] = await Promise.all([gate.enter(), gate.enter()]);
  const [third, fourth] = [gate.enter(), gate.enter()];
  await expect(gate.enter()).rejects.toBeInstanceOf(TryLater);
  expect([await isIn(third), await isIn(fourth)]).toEqual([false, false]);
  second();
  second(); // leaving twice frees one place
  expect([await isIn(third), await isIn(fourth)]).toEqual([true, false]);
  const fifth = gate.enter(); // waits behind the fourth
  first();
  expect([await isIn(fourth), await isIn(fifth)]).toEqual([true, false]);
  for (const one of [third, fourth]) (await one)();
  (await fifth)();
  await Promise.all([gate.enter(), gate.enter()]);
  expect(await isIn(gate.enter())).toBe(false);
});

it('[P6] who has waited too long is told so, and takes no place', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const gate = new Gate({ atOnce: 1, maxWaiting: 5, maxWaitMs: 2_000 });
    const leave = await gate.enter();
    const waiting = gate.enter();
    const refused = expect(waiting).rejects.toBeInstanceOf(TryLater);
    vi.advanceTimersByTime(1_999);
    expect(await isIn(Promise.allSettled([waiting]))).toBe(false);
    vi.advanceTimersByTime(1);
    await refused;
    leave();
    (await gate.enter())();
  } finally {
    vi.useRealTimers();
  }
});

it('[P6] a thousand who come and go at random never are more than may, and all places come back', async () => {
  const gate = new Gate({ atOnce: 7, maxWaiting: 100, maxWaitMs: 10_000 });
  let [inside, most, refused] = [0, 0, 0];
  await Promise.all(
    Array.from({ length: 1_000 }, async (_, n) => {
      for (let turn = 0; turn < n % 30; turn++) await new Promise(setImmediate);
      const leave = await gate.enter().catch(() => null);
      if (leave === null) {
        refused++;
        return;
      }
      most = Math.max(most, ++inside);
      for (let turn = 0; turn < n % 5; turn++) await new Promise(setImmediate);
      inside--;
      leave();
    }),
  );
  expect([inside, most]).toEqual([0, 7]);
  expect(refused).toBeGreaterThan(0);
  const all = await Promise.all(Array.from({ length: 7 }, () => gate.enter()));
  expect(all).toHaveLength(7);
});

it('[P6] while the process is late with its work nobody new is let in, after it everybody', async () => {
  const wide = { atOnce: 100, maxWaiting: 0, maxWaitMs: 1_000 };
  await using admission = new Admission({ handshakes: wide, requests: wide, maxLatenessMs: 50 }, new Metrics());
  const doors = { request: () => admission.request(), handshake: () => admission.handshake('socket') };
  for (const enter of Object.values(doors)) {
    const until = performance.now() + 500;
    while (performance.now() < until); // nothing else runs in this process
    await new Promise((resolve) => setTimeout(resolve, 0)); // the timers that are overdue come first
    await expect(enter()).rejects.toBeInstanceOf(TryLater);
    await vi.waitFor(async () => {
      (await enter())();
    }, 20_000);
  }
});
