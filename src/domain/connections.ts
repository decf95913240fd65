// The open sockets and streams of this node: who is on the other end, what they have been sent, and how to close them when
// their credential no longer holds: at once by a hint, else by the next check (I4).
import { LRUCache } from 'lru-cache';
import type { HintBus, Listening } from '../hints/bus.js';
import type { ConvId, DeviceViewer, Seq } from '../model.js';
import type { Store } from '../store/store.js';
import type { Logger } from 'pino';
import type { RateLimits } from './rate-limits.js';

export type CloseReason = 'REVOKED' | 'STALE_INSTALL';

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
  readonly #store: Store;
  readonly #bus: HintBus;
  readonly #rates: RateLimits;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;

  constructor({
    store,
    bus,
    rates,
    log,
    checkEveryMs = 10_000,
  }: {
    store: Store;
    bus: HintBus;
    rates: RateLimits;
    log: Logger;
    checkEveryMs?: number | undefined;
  }) {
    this.#store = store;
    this.#bus = bus;
    this.#rates = rates;
    this.#log = log;
    this.#timer = setInterval(() => void this.check(), checkEveryMs).unref();
  }

  get size(): number {
    return this.#open.size;
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
      await this.#checkThese([connection]);
    } catch (error) {
      this.release(connection);
      giveBack(); // it is this node that failed
      throw error;
    }
    return connection;
  }

  #listen({ viewer, close }: Connection): Promise<Listening> {
    return this.#bus.listen(viewer.user, {
      hint: (hint) => {
        if (hint.kind === 'device' && hint.device === viewer.device && viewer.installEpoch < hint.installEpoch)
          close(hint.reason);
      },
      resync: () => undefined,
    });
  }

  release(connection: Connection): void {
    this.#open.get(connection)?.stop();
    this.#open.delete(connection);
  }

  /** One statement for all connected devices: heals a lost revocation. */
  async check(): Promise<void> {
    try {
      await this.#checkThese([...this.#open.keys()]);
    } catch (error) {
      this.#log.warn({ err: error }, 'could not check the connected devices');
    }
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
