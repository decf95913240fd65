// How often one node speaks to a conversation's channel (H7): the first hint at once, then what has gathered once per
// interval, merged as a mailbox merges (H4). Nothing is dropped, and what waits at the end is sent.
import type { Metrics } from '../metrics.js';
import type { ConvId, MessageHint } from '../model.js';
import { coalesce } from './mailbox.js';

export interface PaceOptions {
  readonly everyMs: number;
  readonly send: (hint: MessageHint) => void;
  readonly metrics?: Metrics;
}

export class Pace implements AsyncDisposable {
  readonly #options: PaceOptions;
  /** the conversations that were spoken to less than an interval ago, and what gathers for them */
  readonly #busy = new Map<ConvId, Map<string, MessageHint>>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  put(hint: MessageHint): void {
    const gathered = this.#busy.get(hint.conv);
    if (gathered) {
      if (coalesce(gathered, hint)) this.#options.metrics?.hintCoalesced();
      return;
    }
    this.#options.send(hint);
    this.#rest(hint.conv);
  }

  #rest(conv: ConvId): void {
    this.#busy.set(conv, new Map());
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#flush(conv);
    }, this.#options.everyMs).unref();
    this.#timers.add(timer);
  }

  #flush(conv: ConvId): void {
    const gathered = this.#busy.get(conv);
    this.#busy.delete(conv);
    if (!gathered || gathered.size === 0) return;
    for (const hint of gathered.values()) this.#options.send(hint);
    this.#rest(conv);
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const gathered of this.#busy.values()) for (const hint of gathered.values()) this.#options.send(hint);
    this.#busy.clear();
    return Promise.resolve();
  }
}
