// A device as a right client is written: one socket that comes back by itself, everything asked again at a resync, a gap in
// the log synced, what it holds acked, and no older number over a newer one.
import { setTimeout as pause } from 'node:timers/promises';
import type { GraphQLFormattedError } from 'graphql';
import { createClient, type Client } from 'graphql-ws';
import { WebSocket } from 'ws';
import { Newest } from '../support/newest.js';
import type { Balancer } from './cluster.js';
import { Http } from './http.js';
import type { Ledger, ShownConv } from './ledger.js';

export interface EventRow {
  readonly seq: number;
  readonly sender: { readonly id: string } | null;
  readonly text: string | null;
  readonly recalled: boolean;
  readonly kind: string;
  readonly target: { readonly seq: number } | null;
}
export interface BadgeRow {
  readonly unread: number;
  readonly mutedUnread: number;
  readonly convs: number;
}
interface Page {
  readonly items: readonly {
    readonly conv: ShownConv | null;
    readonly events: readonly EventRow[];
    readonly through: number;
    readonly hasMore: boolean;
    readonly error: { readonly code: string } | null;
    readonly reset: { readonly reason: string } | null;
  }[];
}
type HintRow =
  | { readonly __typename: 'Resync'; readonly reason: string }
  | {
      readonly __typename: 'MessageHint';
      readonly seq: number;
      readonly conv: ShownConv;
      readonly event: EventRow | null;
    }
  | { readonly __typename: 'ReadHint' | 'ConvHint'; readonly conv: ShownConv };

const convFields = 'id head read unread delivered muted';
const eventFields = 'seq kind sender { id } text recalled target { seq }';
export const documents = {
  hints: `subscription { hints { __typename ... on Resync { reason } ... on ReadHint { conv { ${convFields} } }
    ... on MessageHint { seq conv { ${convFields} } event { ${eventFields} } } ... on ConvHint { conv { ${convFields} } } } }`,
  badge: `subscription { badgeChanged { unread mutedUnread convs } }`,
  look: `{ convs(first: 200, includeLeft: true) { nodes { ${convFields} } } lagging: convs(first: 200, lagging: true) { nodes { id } }
    badge { unread mutedUnread convs } }`,
  conv: `query ($id: ID!) { conv(id: $id) { ${convFields} } }`,
  sync: `query ($from: [SyncFrom!]!) { sync(from: $from) { items {
    conv { ${convFields} } events { ${eventFields} } through hasMore reset { reason } error { code } } } }`,
  ackMany: `mutation ($items: [Position!]!) { ackMany(items: $items) { items { conv { ${convFields} } delivered error { code } } } }`,
};
export interface Look {
  readonly convs: { readonly nodes: readonly ShownConv[] };
  readonly lagging: { readonly nodes: readonly { readonly id: string }[] };
  readonly badge: BadgeRow;
}

interface Items {
  readonly hints?: HintRow;
  readonly badgeChanged?: BadgeRow;
}

/** What the device holds of one conversation. */
export interface Held {
  readonly events: Map<number, EventRow>;
  through: number;
  acked: number;
}

export class Device implements AsyncDisposable {
  readonly user: string;
  readonly name: string;
  readonly http: Http;
  readonly shown = new Newest<ShownConv>();
  readonly held = new Map<string, Held>();
  badge: BadgeRow | null = null;
  resyncs = 0;
  received = 0;
  readonly #ledger: Ledger;
  readonly #socket: Client;
  readonly #ended = new AbortController();
  /** What it has still to ask for. */
  readonly #todo = { look: false, convs: new Set<string>(), sync: new Set<string>() };
  #working: Promise<void> | null = null;

  constructor(
    cluster: Balancer,
    ledger: Ledger,
    { user, name, credential, slot }: { user: string; name: string; credential: string; slot: number },
  ) {
    this.user = user;
    this.name = name;
    this.#ledger = ledger;
    this.http = new Http(cluster, ledger, { credential, slot, ended: this.#ended.signal });
    let at = slot;
    let silence: NodeJS.Timeout | undefined;
    this.#socket = createClient({
      webSocketImpl: WebSocket,
      // a balancer's work: another node each time
      url: () => `${cluster.urlFrom(at++).replace('http', 'ws')}/graphql`,
      connectionParams: { authorization: `Bearer ${credential}` },
      retryAttempts: Infinity,
      shouldRetry: () => true,
      keepAlive: 10_000,
      on: {
        // what docs and README tell every client to do: a ping without an answer ends the socket
        ping: (received) => {
          if (!received) silence = setTimeout(() => this.#socket.terminate(), 5_000);
        },
        pong: (received) => {
          if (received) clearTimeout(silence);
        },
      },
    });
    this.#subscribe(documents.hints, ({ hints }) => {
      if (hints) this.#hear(hints);
    });
    this.#subscribe(documents.badge, ({ badgeChanged }) => {
      if (badgeChanged) this.badge = badgeChanged;
    });
  }

  /** Has nothing left to ask for. */
  get isIdle(): boolean {
    return this.#working === null;
  }

  holding(conv: string): Held {
    const held = this.held.get(conv) ?? { events: new Map(), through: 0, acked: 0 };
    this.held.set(conv, held);
    return held;
  }

  see(conv: ShownConv): void {
    if (this.shown.take(conv.id, conv) === 'unlike') this.#need('convs', conv.id);
  }

  #subscribe(query: string, next: (data: Items) => void): void {
    this.#socket.subscribe<Items>(
      { query },
      {
        next: ({ data, errors }) => {
          if (errors) this.#incomplete(errors);
          else if (data) next(data);
        },
        // refused by itself, because the bus is away say: asked for again. A lost socket comes back without this.
        error: () => {
          if (this.#ended.signal.aborted) return;
          this.#ledger.repeats('subscription refused');
          setTimeout(() => {
            if (!this.#ended.signal.aborted) this.#subscribe(query, next);
          }, 500);
        },
        complete: () => undefined,
      },
    );
  }

  /** A hint that the database could not complete is as good as lost: everything is looked at again. */
  #incomplete(errors: readonly GraphQLFormattedError[]): void {
    for (const { message, extensions } of errors) {
      if (extensions?.['retryable'] === true) this.#ledger.repeats('hint not complete');
      else this.#ledger.violations.push(`${this.name}: ${message} ${JSON.stringify(extensions)}`);
    }
    this.#need('look');
  }

  #hear(hint: HintRow): void {
    this.received++;
    if (hint.__typename === 'Resync') {
      this.resyncs++;
      this.#need('look');
      return;
    }
    this.see(hint.conv);
    if (hint.__typename === 'ConvHint') this.#need('convs', hint.conv.id);
    if (hint.__typename !== 'MessageHint') return;
    const held = this.holding(hint.conv.id);
    if (hint.event && hint.seq === held.through + 1) this.#keep(held, [hint.event], hint.seq);
    else if (hint.seq > held.through) this.#need('sync', hint.conv.id);
    this.#work();
  }

  #keep(held: Held, events: readonly EventRow[], through: number): void {
    for (const event of events) {
      if (held.events.has(event.seq)) continue; // known: a hint was faster than the page
      held.events.set(event.seq, event);
      const target = event.target && held.events.get(event.target.seq);
      if (event.kind === 'RECALL' && target) held.events.set(target.seq, { ...target, recalled: true, text: null });
    }
    held.through = Math.max(held.through, through);
  }

  #need(what: 'look' | 'convs' | 'sync', conv = ''): void {
    if (what === 'look') this.#todo.look = true;
    else this.#todo[what].add(conv);
    this.#work();
  }

  #work(): void {
    this.#working ??= this.#chores().finally(() => (this.#working = null));
  }

  /** One thing at a time; what comes up meanwhile is done next. */
  async #chores(): Promise<void> {
    try {
      await pause(20); // hints come in crowds: one ack for all of them
      while (await this.#chore());
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#ledger.violations.push(`${this.name}: ${String(error)}`);
    }
  }

  async #chore(): Promise<boolean> {
    const { convs, sync } = this.#todo;
    const [conv] = convs;
    if (this.#todo.look) await this.#look();
    else if (sync.size > 0) await this.#sync([...sync]);
    else if (conv !== undefined) await this.#ask(conv);
    else return this.#ack();
    return true;
  }

  async #look(): Promise<void> {
    this.#todo.look = false;
    const { convs, lagging } = await this.http.ask<Look>(documents.look);
    for (const conv of convs.nodes) {
      this.see(conv);
      if (conv.head > this.holding(conv.id).through) this.#todo.sync.add(conv.id);
    }
    for (const { id } of lagging.nodes) this.#todo.sync.add(id);
  }

  async #ask(id: string): Promise<void> {
    this.#todo.convs.delete(id);
    const { conv } = await this.http.ask<{ conv: ShownConv }>(documents.conv, { id });
    this.see(conv);
  }

  async #sync(convs: readonly string[]): Promise<void> {
    for (const conv of convs) this.#todo.sync.delete(conv);
    const from = convs.map((conv) => ({ conv, after: this.holding(conv).through }));
    const { items } = (await this.http.ask<{ sync: Page }>(documents.sync, { from })).sync;
    for (const { conv, events, through, hasMore, error, reset } of items) {
      if (!conv || error || reset) throw new Error(`sync: ${JSON.stringify({ error, reset })}`);
      this.see(conv);
      this.#keep(this.holding(conv.id), events, through);
      if (hasMore) this.#todo.sync.add(conv.id);
    }
  }

  async #ack(): Promise<boolean> {
    const due = [...this.held].filter(([, { through, acked }]) => through > acked);
    if (due.length === 0) return false;
    const positions = due.map(([conv, { through }]) => ({ conv, seq: through }));
    type Answer = { ackMany: { items: { conv: ShownConv | null; delivered: number | null }[] } };
    const { items } = (await this.http.ask<Answer>(documents.ackMany, { items: positions })).ackMany;
    for (const [index, { conv, delivered }] of items.entries()) {
      const position = positions[index];
      if (!conv || !position || delivered === null) throw new Error(`ackMany: ${JSON.stringify(items)}`);
      this.holding(conv.id).acked = position.seq;
      this.#ledger.deliveredUpTo(this.name, conv.id, position.seq, delivered);
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    // it may be on its way to a node that is no more
    await Promise.resolve(this.#socket.dispose()).catch(() => undefined);
  }
}
