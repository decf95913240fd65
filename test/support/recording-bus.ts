// The bus of one process, with a list of all that was ever announced: what a subscriber's mailbox merges is apart here.
import { createMemoryBus } from '../../src/hints/memory.js';
import type { HintBus } from '../../src/hints/bus.js';
import type { BusHint, MessageHint } from '../../src/model.js';

export interface RecordingBus extends HintBus {
  /** What was announced to this user about this conversation, in order. */
  told(user: string, conv: string): BusHint[];
  /** Who was told of this event by name, in order: once for each publish. */
  named(conv: string, seq: number): string[];
  /** What was announced to the channel of this conversation, in order. */
  toldConv(conv: string): MessageHint[];
}

export function recordingBus(): RecordingBus {
  const inner = createMemoryBus();
  const toConvs: MessageHint[] = [];
  const all: { users: readonly string[]; hint: BusHint }[] = [];
  return {
    state: inner.state,
    publish(users, hint) {
      all.push({ users, hint });
      inner.publish(users, hint);
    },
    publishToConv(hint) {
      toConvs.push(hint);
      inner.publishToConv(hint);
    },
    listen: (user, sink) => inner.listen(user, sink),
    publishToAll: (hint) => {
      inner.publishToAll(hint);
    },
    listenToAll: (sink) => inner.listenToAll(sink),
    listenToConv: (conv, sink) => inner.listenToConv(conv, sink),
    enter: (generation) => inner.enter(generation),
    stats: () => inner.stats(),
    told: (user, conv) =>
      all.flatMap(({ users, hint }) => (users.includes(user) && 'conv' in hint && hint.conv === conv ? [hint] : [])),
    named: (conv, seq) =>
      all.flatMap(({ users, hint }) =>
        hint.kind === 'message' && hint.conv === conv && hint.seq === seq ? users : [],
      ),
    toldConv: (conv) => toConvs.filter((hint) => hint.conv === conv),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
}
