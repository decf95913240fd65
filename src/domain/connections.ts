// The open sockets and streams of this node: who is on the other end, what they have been sent, and how to close them when
// their credential no longer holds: at once by a hint, else by the next check (I4).
import { LRUCache } from 'lru-cache';
import type { HintBus, HintSink, Listening } from '../hints/bus.js';
import type { Metrics } from '../metrics.js';
import type { ConvId, DeviceId, DeviceViewer, Seq } from '../model.js';
import type { Store } from '../store/store.js';
import type { Logger } from 'pino';
import { HeardChanges } from './heard-changes.js';
import type { RateLimits } from './rate-limits.js';

/** TOO_MANY: of the same device; it may come back */
export type CloseReason = 'REVOKED' | 'STALE_INSTALL' | 'TOO_MANY';

/** What one socket has been sent, over all its subscriptions: it never goes back (H8). */
export interface Numbers {
  readonly head: Seq;
  readonly read: Seq;
}

const maxRemembered = 2_000;

/** One socket or SSE stream of a device. Its items go out one after the other, so that "sent before" has a meaning. */
export class Connection {
  readonly viewer: DeviceViewer;
  readonly sent = new LRUCache<ConvId, Numbers>({ max: maxRemembered });
  readonly close: (reason: CloseReason) => void;
  /** of its subscriptions: what only this device is to be told goes there (H5) */
  readonly sinks = new Set<HintSink>();
  #last: Promise<void> = Promise.resolve();

  constructor(viewer: DeviceViewer, close: (reason: CloseReason) => void) {
    this.viewer = viewer;
    this.close = close;
  }

  /** Waits until every earlier turn has been given back; call the answer to give back this one. */
  async turn(): Promise<() => void> {
    const before = this.#last;
    let done: () => void = () => undefined;
    this.#last = new Promise((resolve) => (done = resolve));
    await before;
    return done;
  }
}

export class Connections implements AsyncDisposable {
  readonly #open = new Map<Connection, Listening>();
  /** oldest first */
  readonly #ofDevice = new Map<DeviceId, Set<Connection>>();
  readonly heard: HeardChanges;
  readonly #store: Store;
  readonly #bus: HintBus;
  readonly #rates: RateLimits;
  readonly #log: Logger;
  readonly #metrics: Metrics | undefined;
  readonly #maxPerDevice: number;
  readonly #timer: NodeJS.Timeout;

  constructor({
    store,
    bus,
    rates,
    log,
    metrics,
    checkEveryMs = 10_000,
    maxPerDevice = Infinity,
  }: {
    store: Store;
    bus: HintBus;
    rates: RateLimits;
    log: Logger;
    metrics?: Metrics;
    checkEveryMs?: number | undefined;
    maxPerDevice?: number;
  }) {
    this.#store = store;
    this.heard = new HeardChanges((users) => store.changes.numbers(users));
    this.#bus = bus;
    this.#rates = rates;
    this.#log = log;
    this.#metrics = metrics;
    this.#maxPerDevice = maxPerDevice;
    this.#timer = setInterval(() => void this.check(), checkEveryMs).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  get all(): Connection[] {
    return [...this.#open.keys()];
  }

  /**
   * Resolves once a revocation anywhere would reach it. A credential that has just stopped to hold closes it at once.
   * @throws RATE_LIMITED to a device or user that connects too often (P3)
   */
  async open(viewer: DeviceViewer, close: (reason: CloseReason) => void): Promise<Connection> {
    const giveBack = await this.#rates.spend('connect', viewer);
    const connection = new Connection(viewer, close);
    try {
      this.#open.set(connection, await this.#listen(connection));
      await Promise.all([this.heard.begin(viewer.user), this.#checkThese([connection])]);
      this.#closeOldest(connection);
    } catch (error) {
      this.release(connection);
      giveBack(); // it is this node that failed
      throw error;
    }
    return connection;
  }

  #listen({ viewer, close }: Connection): Promise<Listening> {
    const { user } = viewer;
    return this.#bus.listen(user, {
      hint: (hint) => {
        this.heard.hint(user, hint);
        if (hint.kind === 'device' && hint.device === viewer.device && viewer.installEpoch < hint.installEpoch)
          close(hint.reason);
      },
      resync: () => {
        this.heard.resync(user);
      },
    });
  }

  /**
   * The newest is the one that somebody looks at; the oldest may be half open, left behind by a phone that changed networks.
   * Those who displace each other for ever are slowed down by the limit on connects.
   */
  #closeOldest(newest: Connection): void {
    const { device } = newest.viewer;
    const all = this.#ofDevice.get(device) ?? new Set();
    this.#ofDevice.set(device, all.add(newest));
    for (const oldest of all) {
      if (all.size <= this.#maxPerDevice) return;
      this.release(oldest);
      oldest.close('TOO_MANY');
      this.#metrics?.turnedAway('device');
    }
  }

  release(connection: Connection): void {
    const listening = this.#open.get(connection);
    if (!this.#open.delete(connection)) return;
    listening?.stop();
    this.heard.end(connection.viewer.user);
    const all = this.#ofDevice.get(connection.viewer.device);
    all?.delete(connection);
    if (all?.size === 0) this.#ofDevice.delete(connection.viewer.device);
  }

  /** One statement for all connected devices: heals a lost revocation. And one that notices a restored database (L8). */
  async check(): Promise<void> {
    try {
      if (this.#bus.enter(await this.#store.generation.current())) this.#restored();
      await this.#checkThese([...this.#open.keys()]);
    } catch (error) {
      this.#log.warn({ err: error }, 'could not check the connected devices');
    }
  }

  /** What was sent before the restore is no longer true: numbers may be lower now. */
  #restored(): void {
    this.#log.warn({ connections: this.size }, 'the database was restored: all clients are told to ask again');
    for (const connection of this.#open.keys()) connection.sent.clear();
    this.heard.restored();
  }

  async #checkThese(connections: readonly Connection[]): Promise<void> {
    if (connections.length === 0) return;
    const outdated = await this.#store.devices.outdated(connections.map(({ viewer }) => viewer));
    const byDevice = new Map(outdated.map((row) => [row.device, row]));
    for (const connection of connections) {
      const row = byDevice.get(connection.viewer.device);
      if (row && (row.revoked || row.installEpoch !== connection.viewer.installEpoch)) {
        connection.close(row.revoked ? 'REVOKED' : 'STALE_INSTALL');
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    for (const connection of this.#open.keys()) this.release(connection);
    return Promise.resolve();
  }
}
