// The bus of one process that loses what it is told to lose, as if a node had died before it published.
import { createMemoryBus } from '../../src/hints/memory.js';
import type { HintBus } from '../../src/hints/bus.js';
import type { BusHint } from '../../src/model.js';

export interface SwallowingBus extends HintBus {
  /** From now on hints to a user that fit are lost; null: nothing is. */
  swallow(fits: ((user: string, hint: BusHint) => boolean) | null): void;
  /** How many were lost so far. */
  readonly lost: number;
}

export function swallowingBus(): SwallowingBus {
  const inner = createMemoryBus();
  let fits: ((user: string, hint: BusHint) => boolean) | null = null;
  let lost = 0;
  return {
    state: inner.state,
    get lost() {
      return lost;
    },
    swallow: (next) => (fits = next),
    publish(users, hint) {
      const reached = users.filter((user) => fits?.(user, hint) !== true);
      lost += users.length - reached.length;
      inner.publish(reached, hint);
    },
    publishToConv: (hint) => {
      inner.publishToConv(hint);
    },
    publishToAll: (hint) => {
      inner.publishToAll(hint);
    },
    listenToAll: (sink) => inner.listenToAll(sink),
    listen: (user, sink) => inner.listen(user, sink),
    listenToConv: (conv, sink) => inner.listenToConv(conv, sink),
    enter: (generation) => inner.enter(generation),
    stats: () => inner.stats(),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
}
