// The last metres inside one process: who listens to which channel. A sink that throws harms nobody, a stopped sink
// hears nothing more, and a channel without sinks leaves nothing behind.
import type { BusHint, ConvId, ResyncReason, UserId } from '../model.js';
import type { BusLog, HintSink, Listening } from './bus.js';

/** A user's, a conversation's, or everybody's; also the name that Redis knows it by, after the prefix. */
export type Channel = `u:${UserId}` | `c:${ConvId}` | 'all';
export const userChannel = (user: UserId): Channel => `u:${user}`;
export const convChannel = (conv: ConvId): Channel => `c:${conv}`;

interface Entry {
  readonly sink: HintSink;
}

export class FanOut {
  readonly #log: BusLog | undefined;
  readonly #byChannel = new Map<Channel, Set<Entry>>();
  #sinks = 0;

  constructor(log?: BusLog) {
    this.#log = log;
  }

  get sinks(): number {
    return this.#sinks;
  }

  get channels(): number {
    return this.#byChannel.size;
  }

  /** One sink may listen several times; each listening is stopped by itself. */
  add(channel: Channel, sink: HintSink, onStop?: () => void): Listening {
    const entry: Entry = { sink };
    const entries = this.#byChannel.get(channel) ?? new Set<Entry>();
    this.#byChannel.set(channel, entries.add(entry));
    this.#sinks++;
    return {
      stop: () => {
        if (!entries.delete(entry)) return;
        this.#sinks--;
        if (entries.size === 0 && this.#byChannel.get(channel) === entries) this.#byChannel.delete(channel);
        onStop?.();
      },
    };
  }

  hint(channel: Channel, hint: BusHint): void {
    this.#tell(this.#byChannel.get(channel), (sink) => {
      sink.hint(hint);
    });
  }

  resync(channel: Channel, reason: ResyncReason): void {
    this.#tell(this.#byChannel.get(channel), (sink) => {
      sink.resync(reason);
    });
  }

  resyncAll(reason: ResyncReason): void {
    for (const channel of [...this.#byChannel.keys()]) this.resync(channel, reason);
  }

  #tell(entries: Set<Entry> | undefined, tell: (sink: HintSink) => void): void {
    // A set may lose members while it is walked: a sink that stops another one is obeyed at once.
    for (const { sink } of entries ?? []) {
      try {
        tell(sink);
      } catch (error) {
        this.#log?.warn({ err: error }, 'a hint sink threw');
      }
    }
  }
}
