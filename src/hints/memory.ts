// The hint bus of a single process: no network, always up, nothing to lose. Hints arrive after publish has returned,
// in the order in which they were published.
import type { BusHint, UserId } from '../model.js';
import type { BusLog, HintBus } from './bus.js';
import { FanOut } from './fan-out.js';

export function createMemoryBus(log?: BusLog): HintBus {
  const fanOut = new FanOut(log);
  let pending: { readonly users: readonly UserId[]; readonly hint: BusHint }[] = [];
  let generation = '';
  let closed = false;

  function deliver(): void {
    const batch = pending;
    pending = [];
    if (closed) return;
    for (const { users, hint } of batch) for (const user of users) fanOut.hint(user, hint);
  }

  return {
    state: 'up',
    publish(users, hint) {
      if (closed) return;
      // A macrotask, not a microtask: sinks that publish in turn must not starve input and output.
      if (pending.length === 0) setImmediate(deliver);
      pending.push({ users, hint });
    },
    listen: (user, sink) =>
      closed ? Promise.reject(new Error('the hint bus is closed')) : Promise.resolve(fanOut.add(user, sink)),
    enter(next) {
      const isAnother = generation !== '' && generation !== next;
      generation = next;
      if (isAnother) fanOut.resyncAll('RESTORED');
      return isAnother;
    },
    stats: () => ({ sinks: fanOut.sinks, channels: fanOut.users }),
    [Symbol.asyncDispose]: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}
