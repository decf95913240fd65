// A transaction, then its hints: the only place that publishes. A rollback publishes nothing, and a hint never goes out
// before the commit of what it speaks of (H1).
import type { BusHint, UserId } from '../model.js';
import type { Tx } from '../store/store.js';
import type { Deps } from './deps.js';

/** Tells these users once the transaction has committed. */
export type Tell = (users: readonly UserId[], hint: BusHint) => void;

export async function commit<T>(deps: Deps, work: (tx: Tx, tell: Tell) => Promise<T>): Promise<T> {
  const { answer, told } = await deps.store.transaction(async (tx) => {
    // made anew at each try: a transaction that lost a race runs again
    const hints: { users: readonly UserId[]; hint: BusHint }[] = [];
    const result = await work(tx, (users, hint) => hints.push({ users, hint }));
    await deps.failpoint('before commit');
    return { answer: result, told: hints };
  });
  await deps.failpoint('after commit');
  await deps.failpoint('before publish');
  for (const { users, hint } of told) {
    deps.bus.publish(users, hint);
    deps.metrics.hintPublished(users.length);
  }
  await deps.failpoint('after publish');
  return answer;
}
