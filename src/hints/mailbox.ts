// What waits for one subscriber: an async iterator that a slow reader cannot make grow (H4). Hints coalesce by
// (conversation, kind), conversations take turns, and what does not fit collapses into one resync: late, never silent.
import type { Metrics } from '../metrics.js';
import { isForClients, type BusHint, type ConvId, type Hint, type MessageHint } from '../model.js';
import type { ReadHint, Resync, ResyncReason } from '../model.js';
import type { HintSink } from './bus.js';

const MAX_RECALLED_TARGETS = 32;
/** of one conversation; a signal that nobody reads is worth nothing soon */
const MAX_SIGNALS = 32;
let signals = 0;
/** where hints wait that are of no conversation */
const NO_CONV = 'none';

export interface MailboxOptions {
  /** the item that is there before any hint (H2) */
  readonly first?: ResyncReason;
  /** called once, when the reader has gone */
  readonly onClose?: () => void;
  readonly maxSlots?: number;
  /** which hints this subscriber wants; a resync always passes */
  readonly accepts?: (hint: Hint) => boolean;
  readonly metrics?: Metrics;
}

type Item = Hint | Resync;

export class Mailbox implements AsyncIterableIterator<Item, undefined>, HintSink, AsyncDisposable {
  readonly #accepts: (hint: Hint) => boolean;
  readonly #maxSlots: number;
  readonly #onClose: (() => void) | undefined;
  readonly #metrics: Metrics | undefined;
  /** Both levels in the order of their turn: a conversation's oldest change first, then the next conversation. */
  readonly #convs = new Map<ConvId | typeof NO_CONV, Map<string, Hint>>();
  #slots = 0;
  #resync: Resync | null;
  #closed = false;
  readonly #readers: ((result: IteratorResult<Item, undefined>) => void)[] = [];

  constructor({ first, onClose, maxSlots = 1_000, accepts = () => true, metrics }: MailboxOptions = {}) {
    this.#accepts = accepts;
    this.#maxSlots = maxSlots;
    this.#onClose = onClose;
    this.#metrics = metrics;
    this.#resync = first ? { kind: 'resync', reason: first } : null;
  }

  /** How many items wait to be read. */
  get size(): number {
    return this.#slots + (this.#resync ? 1 : 0);
  }

  hint(hint: BusHint): void {
    if (this.#closed || !isForClients(hint) || !this.#accepts(hint)) return;
    const conv = hint.kind === 'change' ? NO_CONV : (hint.conv ?? NO_CONV);
    const slots = this.#convs.get(conv) ?? new Map<string, Hint>();
    if (hint.kind === 'signal') this.#slots -= dropSignals(slots, MAX_SIGNALS - 1);
    const isMerged = coalesce(slots, hint);
    this.#convs.set(conv, slots);
    if (isMerged) this.#metrics?.hintCoalesced();
    else this.#slots++;
    if (this.#slots > this.#maxSlots || recalledTargets(slots) > MAX_RECALLED_TARGETS) this.#overflow();
    else this.#serve();
  }

  /** Whatever the reader asks after a resync includes everything older, so that need not wait any longer. */
  resync(reason: ResyncReason): void {
    if (this.#closed) return;
    this.#empty();
    this.#resync = { kind: 'resync', reason };
    this.#serve();
  }

  #overflow(): void {
    this.#metrics?.mailboxOverflowed();
    this.resync('OVERFLOW');
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    if (this.#closed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => {
      this.#readers.push(resolve);
      this.#serve();
    });
  }

  /** Ends a pending next() at once; an async generator's would wait for the next hint. */
  return(): Promise<IteratorResult<Item, undefined>> {
    if (!this.#closed) {
      this.#closed = true;
      this.#empty();
      for (const resolve of this.#readers.splice(0)) resolve({ value: undefined, done: true });
      this.#onClose?.();
    }
    return Promise.resolve({ value: undefined, done: true });
  }

  async throw(error?: unknown): Promise<IteratorResult<Item, undefined>> {
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    while (this.#readers.length > 0 && this.size > 0) {
      const value = this.#take();
      if (value) this.#readers.shift()?.({ value, done: false });
    }
  }

  #take(): Item | null {
    const resync = this.#resync;
    if (resync) {
      this.#resync = null;
      return resync;
    }
    for (const [conv, slots] of this.#convs) {
      this.#convs.delete(conv);
      for (const [key, hint] of slots) {
        slots.delete(key);
        this.#slots--;
        if (slots.size > 0) this.#convs.set(conv, slots); // takes the last turn
        return hint;
      }
    }
    return null;
  }

  #empty(): void {
    this.#resync = null;
    this.#convs.clear();
    this.#slots = 0;
  }
}

/** Puts a hint among those of its conversation that still wait; answers whether it was merged with one of them. */
export function coalesce<H extends Hint>(slots: Map<string, H>, hint: H): boolean {
  const key = slotOf(hint);
  const kept = slots.get(key);
  // Deleted first, so that the newer hint takes the last turn and a conversation's seqs come out ascending.
  slots.delete(key);
  slots.set(key, kept === undefined ? hint : (merge(kept, hint) as H)); // of one slot, so of one kind
  return kept !== undefined;
}

/** A message hint never takes the place of another kind; every recalled target has its own. */
function slotOf(hint: Hint): string {
  if (hint.kind === 'change') return JSON.stringify(hint.about);
  // typing goes on, each other signal says something of its own
  if (hint.kind === 'signal') {
    return `SIGNAL ${hint.contentType === 'TYPING' ? (hint.sender ?? '') : `/${String(++signals)}`}`;
  }
  if (hint.kind !== 'message') return hint.kind;
  return hint.eventKind === 'RECALL' ? `RECALL ${String(hint.target ?? hint.seq)}` : hint.eventKind;
}

/** Drops the oldest signals beyond `keep`; answers how many. */
function dropSignals(slots: Map<string, Hint>, keep: number): number {
  const waiting = [...slots.keys()].filter((key) => key.startsWith('SIGNAL '));
  const dropped = waiting.slice(0, Math.max(0, waiting.length - keep));
  for (const key of dropped) slots.delete(key);
  return dropped.length;
}

function recalledTargets(slots: ReadonlyMap<string, Hint>): number {
  if (slots.size <= MAX_RECALLED_TARGETS) return 0;
  return [...slots.keys()].filter((key) => key.startsWith('RECALL ')).length;
}

/** Hints may arrive in any order: what they say only rises, so the larger one is the truth. */
function merge(kept: Hint, next: Hint): Hint {
  if (kept.kind === 'message' && next.kind === 'message') return newestMessage(kept, next);
  if (kept.kind === 'read' && next.kind === 'read') return largestRead(kept, next);
  return next;
}

function newestMessage(kept: MessageHint, next: MessageHint): MessageHint {
  const newest = next.seq >= kept.seq ? next : kept;
  const head = Math.max(kept.head, next.head);
  return newest.head === head ? newest : { ...newest, head };
}

function largestRead(kept: ReadHint, next: ReadHint): ReadHint {
  if (next.read !== kept.read) return next.read > kept.read ? next : kept;
  return next.head >= kept.head ? next : kept;
}
