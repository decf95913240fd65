// The hint bus of a single process: no network, always up, nothing to lose. Hints arrive after publish has returned,
// in the order in which they were published.
import type { BusHint } from '../model.js';
import type { BusLog, HintBus, HintSink, Listening } from './bus.js';
import { convChannel, FanOut, userChannel, type Channel } from './fan-out.js';

export function createMemoryBus(log?: BusLog): HintBus {
  const fanOut = new FanOut(log);
  let pending: { readonly channels: readonly Channel[]; readonly hint: BusHint }[] = [];
  let generation = '';
  let closed = false;

  function deliver(): void {
    const batch = pending;
    pending = [];
    if (closed) return;
    for (const { channels, hint } of batch) for (const channel of channels) fanOut.hint(channel, hint);
  }

  function publish(channels: readonly Channel[], hint: BusHint): void {
    if (closed) return;
    // A macrotask, not a microtask: sinks that publish in turn must not starve input and output.
    if (pending.length === 0) setImmediate(deliver);
    pending.push({ channels, hint });
  }

  const listen = (channel: Channel, sink: HintSink): Promise<Listening> =>
    closed ? Promise.reject(new Error('the hint bus is closed')) : Promise.resolve(fanOut.add(channel, sink));

  return {
    state: 'up',
    publish: (users, hint) => publish(users.map(userChannel), hint),
    publishToConv: (hint) => publish([convChannel(hint.conv)], hint),
    publishToAll: (hint) => publish(['all'], hint),
    listen: (user, sink) => listen(userChannel(user), sink),
    listenToConv: (conv, sink) => listen(convChannel(conv), sink),
    listenToAll: (sink) => listen('all', sink),
    enter(next) {
      const isAnother = generation !== '' && generation !== next;
      generation = next;
      if (isAnother) fanOut.resyncAll('RESTORED');
      return isAnother;
    },
    stats: () => ({ sinks: fanOut.sinks, channels: fanOut.channels }),
    [Symbol.asyncDispose]: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}
