// What this process counts, one function per thing worth counting. While it works it only adds numbers; text is made when
// somebody asks. Every label has a closed list of values: no id of a user, device or conversation is ever one, and nothing
// that a client chooses.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ResyncReason } from './model.js';

export interface MetricsOptions {
  /** the names that an operation can have; what is not among them counts as "other" */
  readonly operations?: readonly string[];
  /** the fields that can be subscribed to */
  readonly subscriptions?: readonly string[];
  readonly errorCodes?: readonly string[];
}

/** Numbers by the values of one label; a value that is not of the list counts as "other". */
class Tally {
  readonly #counts: Map<string, number>;

  constructor(known: readonly string[]) {
    this.#counts = new Map(known.map((value) => [value, 0]));
  }

  add(value: string, by = 1): void {
    const counted = this.#counts.has(value) ? value : 'other';
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + by);
  }

  entries(): Iterable<[string, number]> {
    return this.#counts;
  }
}

const resyncReasons = Object.keys({
  START: true,
  BUS: true,
  OVERFLOW: true,
  MODE: true,
  RESTORED: true,
  VERSION: true,
} satisfies Record<ResyncReason, true>);

export class Metrics {
  readonly #registry = new Registry();
  readonly #hints = { published: 0, failed: 0, redelivered: 0, delivered: 0, coalesced: 0, overflows: 0 };
  readonly #resyncs = new Tally(resyncReasons);
  readonly #subscriptions: Tally;
  readonly #errors: Tally;
  readonly #turnedAway = new Tally(['socket', 'stream', 'request', 'device']);
  #databaseFailures = 0;
  readonly #durations: ReadonlyMap<string, Histogram.Internal<'operation'>>;
  #sockets = 0;

  constructor({ operations = [], subscriptions = [], errorCodes = [] }: MetricsOptions = {}) {
    this.#subscriptions = new Tally(subscriptions);
    this.#errors = new Tally(errorCodes);
    this.#durations = this.#histogram([...operations, 'other']);
    const hints = this.#hints;
    this.#counter(
      'hints_published_total',
      'Hints given to the bus, one for each user or large group told.',
      () => hints.published,
    );
    this.#counter('hint_publish_failures_total', 'Hints that did not get through to Redis.', () => hints.failed);
    this.#counter('hints_delivered_total', 'Hints handed to subscribers.', () => hints.delivered);
    this.#counter('hints_redelivered_total', 'Lost hints told again by the scan.', () => hints.redelivered);
    this.#counter('hints_coalesced_total', 'Hints merged with one that still waited.', () => hints.coalesced);
    this.#counter('mailbox_overflows_total', 'Mailboxes emptied for a resync: full.', () => hints.overflows);
    this.#counterBy('resyncs_total', 'reason', 'Resyncs handed to subscribers.', this.#resyncs);
    this.#counterBy('errors_total', 'code', 'Errors that left, by code.', this.#errors);
    this.#counterBy('turned_away_total', 'kind', 'Told to come back, nothing run; by kind.', this.#turnedAway);
    this.#counter('database_failures_total', 'Errors for want of the database.', () => this.#databaseFailures);
    this.#gauge('open_sockets', 'WebSockets open now.', () => this.#sockets);
    this.#subscriptionGauge();
  }

  socketOpened(): void {
    this.#sockets++;
  }

  socketClosed(): void {
    this.#sockets--;
  }

  subscriptionOpened(field: string): void {
    this.#subscriptions.add(field);
  }

  subscriptionClosed(field: string): void {
    this.#subscriptions.add(field, -1);
  }

  hintPublished(users: number): void {
    this.#hints.published += users;
  }

  publishFailed(): void {
    this.#hints.failed++;
  }

  hintDelivered(): void {
    this.#hints.delivered++;
  }

  hintRedelivered(): void {
    this.#hints.redelivered++;
  }

  hintCoalesced(): void {
    this.#hints.coalesced++;
  }

  mailboxOverflowed(): void {
    this.#hints.overflows++;
  }

  resynced(reason: ResyncReason): void {
    this.#resyncs.add(reason);
  }

  errorLeft(code: string): void {
    this.#errors.add(code);
  }

  /** Before anything ran; `device`: the oldest socket of one that has too many. */
  turnedAway(kind: 'socket' | 'stream' | 'request' | 'device'): void {
    this.#turnedAway.add(kind);
  }

  databaseFailed(): void {
    this.#databaseFailures++;
  }

  operationTook(operation: string, durationMs: number): void {
    (this.#durations.get(operation) ?? this.#durations.get('other'))?.observe(durationMs / 1_000);
  }

  /** What tells its own numbers, asked whenever ours are. */
  watch(
    pool: { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number },
    bus: { readonly state: 'up' | 'down' },
  ): void {
    this.#gauge('db_pool_connections', 'Connections of the pool.', () => pool.totalCount);
    this.#gauge('db_pool_idle', 'Connections that nobody uses now.', () => pool.idleCount);
    this.#gauge('db_pool_waiting', 'Requests that wait for a connection.', () => pool.waitingCount);
    this.#gauge('hint_bus_up', '1 while hints travel between nodes, else 0.', () => (bus.state === 'up' ? 1 : 0));
  }

  /** Everything, as Prometheus reads it. */
  async text(): Promise<string> {
    return `${await this.#registry.metrics()}\n${await processMetrics().metrics()}`;
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name: `tidemark_${name}`,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }

  #counter(name: string, help: string, read: () => number): void {
    new Counter({
      name: `tidemark_${name}`,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  #counterBy(name: string, label: string, help: string, tally: Tally): void {
    new Counter({
      name: `tidemark_${name}`,
      help,
      labelNames: [label],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [value, count] of tally.entries()) this.inc({ [label]: value }, count);
      },
    });
  }

  #subscriptionGauge(): void {
    const open = this.#subscriptions;
    new Gauge({
      name: 'tidemark_live_subscriptions',
      help: 'Subscriptions live now, by field.',
      labelNames: ['field'],
      registers: [this.#registry],
      collect() {
        for (const [field, count] of open.entries()) this.set({ field }, count);
      },
    });
  }

  /** Bound once for each name, so that no operation makes a label. */
  #histogram(names: readonly string[]): ReadonlyMap<string, Histogram.Internal<'operation'>> {
    const histogram = new Histogram({
      name: 'tidemark_operation_duration_seconds',
      help: 'How long operations took, by root field; of a subscription, until it was live.',
      labelNames: ['operation'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers: [this.#registry],
    });
    return new Map(
      names.map((operation) => {
        histogram.zero({ operation });
        return [operation, histogram.labels(operation)];
      }),
    );
  }
}

let ofProcess: Registry | null = null;

/** Of the process, not of one app in it: processor, memory, garbage collection, event-loop delay. Watched from the first call. */
export function processMetrics(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  return ofProcess;
}
