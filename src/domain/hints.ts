// A subscriber's hints: from the mailbox, with what was selected beyond them loaded as each item is sent (H1), and never
// lower than what the same socket was sent before (H8).
import type { HintSink } from '../hints/bus.js';
import { Mailbox } from '../hints/mailbox.js';
import type { ChangeHint, Conv, Hint, LogEvent, Resync, SignalHint, UserId, Viewer } from '../model.js';
import { requireDevice, toLook } from './access.js';
import type { Connection, Numbers } from './connections.js';
import type { Deps } from './deps.js';
import { forbidden, unavailable } from './errors.js';

/** What the subscriber selected that the hint itself does not hold. */
export interface Selected {
  /** fields of `conv` */
  readonly conv: ReadonlySet<string>;
  readonly event: boolean;
  readonly target: boolean;
}
/** What happened to contacts: its fields are loaded as they are resolved. So are a signal's. */
export interface ChangeItem {
  readonly hint: ChangeHint;
}
export interface SignalItem {
  readonly hint: SignalHint;
}
type ConvHints = Exclude<Hint, ChangeHint | SignalHint>;
/** A hint as it is sent. `conv` holds at least the selected fields. */
export interface HintItem {
  readonly hint: ConvHints;
  readonly conv: Pick<Conv, 'id'> & Partial<Conv>;
  readonly event: LogEvent | null;
  readonly target: LogEvent | null;
}
export type SentItem = HintItem | ChangeItem | SignalItem | Resync;

const known = {
  message: new Set(['__typename', 'id', 'type', 'head']),
  read: new Set(['__typename', 'id', 'type', 'head', 'read', 'unread']),
  conv: new Set(['__typename', 'id', 'type']),
} as const;

export interface Subscription {
  /** the field subscribed to */
  readonly field: string;
  readonly accepts: (hint: Hint) => boolean;
  readonly selected: Readonly<Record<ConvHints['kind'], Selected>>;
}

/** Live once this resolves: the bus has acknowledged, and the first item is a resync (H2). */
export async function subscribe(
  deps: Deps,
  viewer: Viewer,
  connection: Connection | null,
  { field, accepts, selected }: Subscription,
): Promise<HintStream> {
  requireDevice(viewer);
  if (connection === null) throw forbidden('subscriptions need a WebSocket or an event stream');
  let stop: () => void = () => undefined;
  const mailbox = new Mailbox({
    first: 'START',
    accepts,
    onClose: () => {
      stop();
    },
    metrics: deps.metrics,
  });
  try {
    const own = await deps.channels.listen(connection.viewer.user, mailbox);
    stop = () => {
      own.stop();
    };
    // only `hints` has signals; a lost one is no reason to ask for anything again
    const all = field === 'hints' ? await deps.bus.listenToAll(signalsTo(mailbox)) : null;
    connection.sinks.add(mailbox);
    stop = () => {
      connection.sinks.delete(mailbox);
      own.stop();
      all?.stop();
      deps.metrics.subscriptionClosed(field);
    };
    deps.metrics.subscriptionOpened(field);
  } catch (error) {
    stop();
    deps.log.warn({ err: error }, 'the hint bus does not answer');
    throw unavailable('live hints are');
  }
  return new HintStream(deps, connection, mailbox, selected);
}

const signalsTo = (mailbox: Mailbox): HintSink => ({
  hint: (hint) => {
    mailbox.hint(hint);
  },
  resync: () => undefined,
});

export class HintStream implements AsyncIterableIterator<SentItem, undefined> {
  readonly #deps: Deps;
  readonly #connection: Connection;
  readonly #mailbox: Mailbox;
  readonly #selected: Readonly<Record<ConvHints['kind'], Selected>>;
  #giveBack: (() => void) | null = null;
  #closed = false;

  constructor(
    deps: Deps,
    connection: Connection,
    mailbox: Mailbox,
    selected: Readonly<Record<ConvHints['kind'], Selected>>,
  ) {
    this.#deps = deps;
    this.#connection = connection;
    this.#mailbox = mailbox;
    this.#selected = selected;
  }

  /** The turn is kept until the reader comes back, which is when the item has been written to the socket. */
  async next(): Promise<IteratorResult<SentItem, undefined>> {
    this.#endTurn();
    const result = await this.#mailbox.next();
    if (result.done === true) return result;
    const { value } = result;
    if (value.kind === 'resync') return this.#resync(value);
    if (value.kind === 'signal' && isLate(value)) return this.next();
    const giveBack = await this.#connection.turn();
    // ended while it waited: nobody comes back to end this turn
    if (this.#closed) {
      giveBack();
      return { done: true, value: undefined };
    }
    this.#giveBack = giveBack;
    try {
      const item = await this.#prepare(withoutForeignDevice(value, this.#connection.viewer.user));
      this.#deps.metrics.hintDelivered();
      return { done: false, value: item };
    } catch (error) {
      this.#endTurn();
      this.#deps.log.warn({ err: error }, 'a hint could not be completed');
      return this.#resync({ kind: 'resync', reason: 'BUS' });
    }
  }

  #resync(value: Resync): IteratorResult<SentItem, undefined> {
    this.#deps.metrics.resynced(value.reason);
    return { done: false, value };
  }

  async return(): Promise<IteratorResult<SentItem, undefined>> {
    this.#closed = true;
    this.#endTurn();
    await this.#mailbox.return();
    return { done: true, value: undefined };
  }

  async throw(error?: unknown): Promise<IteratorResult<SentItem, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #endTurn(): void {
    this.#giveBack?.();
    this.#giveBack = null;
  }

  async #prepare(hint: Hint): Promise<HintItem | ChangeItem | SignalItem> {
    if (hint.kind === 'change') return { hint };
    if (hint.kind === 'signal') return { hint };
    const { viewer } = this.#connection;
    const { loads } = this.#deps;
    const selected = this.#selected[hint.kind];
    const event = { user: viewer.user, conv: hint.conv };
    const [conv, seen, target] = await Promise.all([
      this.#needsConv(hint) ? loads.conv({ ...toLook(viewer), conv: hint.conv }) : null,
      hint.kind === 'message' && selected.event ? loads.event({ ...event, seq: hint.seq }) : null,
      hint.kind === 'message' && selected.target && hint.target !== null
        ? loads.event({ ...event, seq: hint.target })
        : null,
    ]);
    return this.#inOrder({ hint, conv: conv ?? fromHint(hint), event: seen, target });
  }

  #needsConv(hint: ConvHints): boolean {
    for (const field of this.#selected[hint.kind].conv) if (!known[hint.kind].has(field)) return true;
    return false;
  }

  /** What would take the socket back is read again: the database holds at least what was sent (R5, H8). */
  async #inOrder(item: HintItem): Promise<HintItem> {
    const { sent, viewer } = this.#connection;
    const before = sent.get(item.hint.conv) ?? { head: 0, read: 0 };
    const now = numbersOf(item, Math.min);
    let shown = item;
    if ((now.head ?? before.head) < before.head || (now.read ?? before.read) < before.read) {
      const conv = await this.#deps.loads.conv({ ...toLook(viewer), conv: item.hint.conv });
      if (conv) shown = { ...item, conv, hint: raised(item.hint, conv) };
    }
    const { head = 0, read = 0 } = numbersOf(shown, Math.max);
    sent.set(item.hint.conv, { head: Math.max(before.head, head), read: Math.max(before.read, read) });
    return shown;
  }
}

const signalLifeMs = 10_000;
/** A moment ago is too late. Nodes whose clocks differ by more lose signals to one another. */
const isLate = ({ sentAt }: SignalHint): boolean => Date.now() - sentAt > signalLifeMs;

/** Which device wrote is for the writer's own devices only. */
function withoutForeignDevice(hint: Hint, user: UserId): Hint {
  const isForeign = (hint.kind === 'message' || hint.kind === 'signal') && hint.sender !== user;
  return isForeign ? { ...hint, originDevice: null } : hint;
}

function fromHint(hint: ConvHints): HintItem['conv'] {
  const base = { id: hint.conv, type: hint.conversationType };
  if (hint.kind === 'message') return { ...base, head: hint.head };
  return hint.kind === 'read' ? { ...base, head: hint.head, read: hint.read, unread: hint.unread } : base;
}

/** The lowest or the highest numbers that the item shows: a hint may be older than what was loaded for it. */
function numbersOf({ hint, conv }: HintItem, choose: (...of: number[]) => number): Partial<Numbers> {
  const heads = [conv.head, hint.kind === 'conv' ? undefined : hint.head].filter((n) => n !== undefined);
  const reads = [conv.read, hint.kind === 'read' ? hint.read : undefined].filter((n) => n !== undefined);
  return {
    ...(heads.length > 0 ? { head: choose(...heads) } : {}),
    ...(reads.length > 0 ? { read: choose(...reads) } : {}),
  };
}

function raised(hint: ConvHints, { head, read, unread }: Conv): ConvHints {
  if (hint.kind === 'conv') return hint;
  return hint.kind === 'message' ? { ...hint, head } : { ...hint, head, read, unread };
}
