// The listening connection of the Redis bus. A channel is live only once Redis has confirmed it (H2); after a break
// every wanted channel is subscribed again and reported as it is confirmed (H3). No failed command ever rejects
// anything: a lost connection is mended at the next "ready", a refused command is tried again.
import type { BusLog } from './bus.js';

const RETRY_MS = 1_000;

/** The part of an ioredis client that is used here; its own resubscribing must be off, for that leaks rejections. */
export interface SubscriberConnection {
  readonly status: string;
  on(event: string, listener: (...args: never[]) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
}

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

interface Channel {
  live: boolean;
  /** was live before the connection broke: what came meanwhile is gone */
  lost: boolean;
  readonly waiters: Set<Waiter>;
}

export interface AckedSubscriberOptions {
  readonly connection: SubscriberConnection;
  readonly log: BusLog;
  /** a channel that had been live is live again */
  readonly onRestored: (channel: string) => void;
}

export class AckedSubscriber {
  readonly #connection: SubscriberConnection;
  readonly #log: BusLog;
  readonly #onRestored: (channel: string) => void;
  readonly #channels = new Map<string, Channel>();
  /** counts connections, so that an answer of an earlier one is not believed */
  #round = 0;
  #up = false;
  #closed = false;

  constructor({ connection, log, onRestored }: AckedSubscriberOptions) {
    this.#connection = connection;
    this.#log = log;
    this.#onRestored = onRestored;
    connection.on('ready', () => void this.#resubscribe());
    connection.on('close', () => {
      this.#broken();
    });
  }

  /** Connected, and everything that was wanted at that moment has been answered for. */
  get up(): boolean {
    return this.#up;
  }

  /**
   * What RedisPubSub gets as its subscriber. It is told "done" at once and never hears of an error: a rejected
   * SUBSCRIBE would become an unhandled rejection inside it, and so would UNSUBSCRIBE while Redis is away. Who needs
   * the confirmation asks live().
   */
  facade(): object {
    return {
      on: (event: string, listener: (...args: never[]) => void) => this.#connection.on(event, listener),
      subscribe: (channel: string, done: (error: null) => void) => {
        this.#want(channel);
        done(null);
      },
      unsubscribe: (channel: string) => {
        this.#drop(channel);
      },
      punsubscribe: () => undefined,
    };
  }

  live(name: string, timeoutMs: number): Promise<void> {
    const channel = this.#channels.get(name);
    if (this.#closed || !channel) return Promise.reject(new Error('the hint bus is closed'));
    if (channel.live) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiter.reject(new Error(`the hint bus did not confirm within ${String(timeoutMs)} ms: is Redis reachable?`));
      }, timeoutMs);
      const settle = (): void => {
        clearTimeout(timer);
        channel.waiters.delete(waiter);
      };
      const waiter: Waiter = {
        resolve: () => {
          settle();
          resolve();
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      channel.waiters.add(waiter);
    });
  }

  close(): void {
    this.#closed = true;
    this.#up = false;
    for (const channel of this.#channels.values()) {
      for (const waiter of channel.waiters) waiter.reject(new Error('the hint bus is closed'));
    }
    this.#channels.clear();
  }

  #want(name: string): void {
    const channel: Channel = { live: false, lost: false, waiters: new Set() };
    this.#channels.set(name, channel);
    // Not connected: the next "ready" sends it.
    if (this.#connection.status === 'ready') void this.#subscribe(name, channel);
  }

  #drop(name: string): void {
    this.#channels.delete(name);
    if (this.#connection.status !== 'ready') return; // a new connection knows nothing of it
    this.#connection.unsubscribe(name).catch((error: unknown) => {
      this.#log.warn({ err: error, channel: name }, 'UNSUBSCRIBE failed');
    });
  }

  #broken(): void {
    this.#round++;
    this.#up = false;
    for (const channel of this.#channels.values()) {
      channel.lost ||= channel.live;
      channel.live = false;
    }
  }

  async #resubscribe(): Promise<void> {
    const round = this.#round;
    await Promise.all([...this.#channels].map(([name, channel]) => this.#subscribe(name, channel)));
    if (round === this.#round && !this.#closed) this.#up = true;
  }

  async #subscribe(name: string, channel: Channel): Promise<void> {
    const round = this.#round;
    const isCurrent = (): boolean => round === this.#round && this.#channels.get(name) === channel;
    try {
      await this.#connection.subscribe(name);
    } catch (error) {
      if (!isCurrent() || this.#closed) return;
      this.#log.warn({ err: error, channel: name }, 'SUBSCRIBE was refused; trying again');
      setTimeout(() => {
        if (isCurrent()) void this.#subscribe(name, channel);
      }, RETRY_MS).unref();
      return;
    }
    if (isCurrent()) this.#confirmed(name, channel);
  }

  #confirmed(name: string, channel: Channel): void {
    const { lost } = channel;
    channel.live = true;
    channel.lost = false;
    for (const waiter of channel.waiters) waiter.resolve();
    // Redis answers in order: what was published before this confirmation is covered by the resync, what comes after
    // it arrives as a hint. So each channel's own answer is the barrier.
    if (lost) this.#onRestored(name);
  }
}
