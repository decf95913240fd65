// Two operations of which the second waits for a lock that the first holds.
import { expect } from 'vitest';
import type { World } from '../support/world.js';
import { someoneWaits, type FailpointGate } from '../model/failpoint-gate.js';

/** Begins `second` once `first` stands before its commit, lets `first` go once `second` waits, and answers with both. */
export async function waitingBehind<A, B>(
  { app }: World,
  gate: FailpointGate,
  first: () => Promise<A>,
  second: () => Promise<B>,
): Promise<[A, B]> {
  const stop = gate.stopAt('before commit');
  const leading = first();
  await Promise.race([stop.reached, leading]);
  let over = false;
  const following = second().finally(() => (over = true));
  following.catch(() => undefined);
  await someoneWaits(app.databaseUrl, () => over);
  const waited = !over;
  stop.letGo();
  const answers: [A, B] = [await leading, await following];
  expect(waited, 'the second waited for the first').toBe(true);
  return answers;
}
