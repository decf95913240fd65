// A transaction, then its hints: the only place that publishes. A rollback publishes nothing, and a hint never goes out
// before the commit of what it speaks of (H1).
import type { HintBus } from '../hints/bus.js';
import { Pace } from '../hints/pace.js';
import type { Metrics } from '../metrics.js';
import type { BusHint, SignalHint, UserId } from '../model.js';
import type { Tx } from '../store/store.js';
import type { Deps } from './deps.js';

/** Who is told: these users, one by one, and with `channel` whoever listens to the hint's conversation and may see it (H7). */
export interface Audience {
  readonly users: readonly UserId[];
  readonly channel: boolean;
}
/** Tells them once the transaction has committed. */
export type Tell = (to: readonly UserId[] | Audience, hint: BusHint) => void;

export async function commit<T>(deps: Deps, work: (tx: Tx, tell: Tell) => Promise<T>): Promise<T> {
  const { answer, told } = await deps.store.transaction(async (tx) => {
    // made anew at each try: a transaction that lost a race runs again
    const hints: { to: Audience; hint: BusHint }[] = [];
    const result = await work(tx, (to, hint) =>
      hints.push({ to: 'users' in to ? to : { users: to, channel: false }, hint }),
    );
    await deps.failpoint('before commit');
    return { answer: result, told: hints };
  });
  await deps.failpoint('after commit');
  await deps.failpoint('before publish');
  for (const { to, hint } of told) announce(deps, to, hint);
  await deps.failpoint('after publish');
  return answer;
}

/** Tells of this moment, with no commit to wait for: of what is kept nowhere. */
export function tellNow({ bus, metrics }: Deps, to: readonly UserId[] | 'all', hint: SignalHint): void {
  if (to === 'all') bus.publishToAll(hint);
  else bus.publish(to, hint);
  metrics.hintPublished(to === 'all' ? 1 : to.length);
}

function announce({ bus, pace, metrics }: Deps, { users, channel }: Audience, hint: BusHint): void {
  if (users.length > 0) bus.publish(users, hint);
  metrics.hintPublished(users.length);
  if (channel && hint.kind === 'message') pace.put(hint);
}

/** What a node has to say to a conversation's channel, at most once per interval and kind. */
export const createPace = (bus: HintBus, everyMs: number, metrics: Metrics): Pace =>
  new Pace({
    everyMs,
    metrics,
    send: (hint) => {
      bus.publishToConv(hint);
      metrics.hintPublished(1);
    },
  });
