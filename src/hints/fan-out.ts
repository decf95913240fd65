// The last metres inside one process: who listens for which user. A sink that throws harms nobody, a stopped sink
// hears nothing more, and a user without sinks leaves nothing behind.
import type { BusHint, ResyncReason, UserId } from '../model.js';
import type { BusLog, HintSink, Listening } from './bus.js';

interface Entry {
  readonly sink: HintSink;
}

export class FanOut {
  readonly #log: BusLog | undefined;
  readonly #byUser = new Map<UserId, Set<Entry>>();
  #sinks = 0;

  constructor(log?: BusLog) {
    this.#log = log;
  }

  get sinks(): number {
    return this.#sinks;
  }

  get users(): number {
    return this.#byUser.size;
  }

  /** One sink may listen several times; each listening is stopped by itself. */
  add(user: UserId, sink: HintSink, onStop?: () => void): Listening {
    const entry: Entry = { sink };
    const entries = this.#byUser.get(user) ?? new Set<Entry>();
    this.#byUser.set(user, entries.add(entry));
    this.#sinks++;
    return {
      stop: () => {
        if (!entries.delete(entry)) return;
        this.#sinks--;
        if (entries.size === 0 && this.#byUser.get(user) === entries) this.#byUser.delete(user);
        onStop?.();
      },
    };
  }

  hint(user: UserId, hint: BusHint): void {
    this.#tell(this.#byUser.get(user), (sink) => {
      sink.hint(hint);
    });
  }

  resync(user: UserId, reason: ResyncReason): void {
    this.#tell(this.#byUser.get(user), (sink) => {
      sink.resync(reason);
    });
  }

  resyncAll(reason: ResyncReason): void {
    for (const user of [...this.#byUser.keys()]) this.resync(user, reason);
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
