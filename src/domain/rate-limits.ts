// How often a device may do what (P3). Counted in this process, so that Redis is never on the path of a request; who has
// not asked for a while is forgotten, so memory is bounded by the devices that are active now.
import type { Rate, Rates } from '../config.js';
import { deviceOf, type Viewer } from '../model.js';
import { rateLimited } from './errors.js';

export interface RateLimits {
  /**
   * Answers how to give back what was spent. The service key, the application's own server, has no limit.
   * @throws RATE_LIMITED with the exact time after which the same passes; what is refused is not counted
   */
  spend(kind: keyof Rates, viewer: Viewer, points?: number): Promise<() => void>;
}

const minSwept = 1_000;

/**
 * Buckets that trickle (GCRA): each key is the moment at which its bucket would be full again. A bucket holds `burst`, and
 * what was taken comes back evenly at `rate`, so nobody waits longer than for what they ask.
 */
export class Buckets {
  readonly #fullAt = new Map<string, number>();
  readonly #msEach: number;
  readonly #burst: number;
  #sweepAt = minSwept;

  constructor({ rate, perMs, burst }: Rate) {
    this.#msEach = perMs / rate;
    this.#burst = burst;
  }

  /** How long until this many are there; 0: now. More than a bucket holds could never pass: that asks for a full one. */
  waitMs(key: string, points: number, now: number): number {
    const missingMs = Math.max(0, (this.#fullAt.get(key) ?? now) - now);
    const waitMs = missingMs + (Math.min(points, this.#burst) - this.#burst) * this.#msEach;
    // a sum of fractions is off by less than that
    return waitMs < 0.001 ? 0 : waitMs;
  }

  take(key: string, points: number, now: number): void {
    this.#fullAt.set(key, Math.max(now, this.#fullAt.get(key) ?? now) + Math.min(points, this.#burst) * this.#msEach);
    if (this.#fullAt.size >= this.#sweepAt) this.#sweep(now);
  }

  giveBack(key: string, points: number): void {
    const fullAt = this.#fullAt.get(key);
    if (fullAt !== undefined) this.#fullAt.set(key, fullAt - Math.min(points, this.#burst) * this.#msEach);
  }

  get size(): number {
    return this.#fullAt.size;
  }

  /** A full bucket is as good as none. Each key is looked at a bounded number of times for each one added. */
  #sweep(now: number): void {
    for (const [key, fullAt] of this.#fullAt) if (fullAt <= now) this.#fullAt.delete(key);
    this.#sweepAt = Math.max(minSwept, 2 * this.#fullAt.size);
  }
}

export function createRateLimits(rates: Rates): RateLimits {
  const perDevice = {
    send: new Buckets(rates.send),
    read: new Buckets(rates.read),
    ack: new Buckets(rates.ack),
    signal: new Buckets(rates.signal),
    connect: new Buckets(rates.connect),
  };
  const connectsOfUser = new Buckets(rates.connect);
  return {
    async spend(kind, viewer, points = 1) {
      const device = deviceOf(viewer);
      if (device === null) return () => undefined;
      const asked: (readonly [Buckets, string])[] = [[perDevice[kind], device.device]];
      if (kind === 'connect') asked.push([connectsOfUser, device.user]);
      const now = performance.now();
      const waitMs = Math.max(...asked.map(([buckets, key]) => buckets.waitMs(key, points, now)));
      if (waitMs > 0) throw rateLimited(Math.ceil(waitMs));
      for (const [buckets, key] of asked) buckets.take(key, points, now);
      return () => {
        for (const [buckets, key] of asked) buckets.giveBack(key, points);
      };
    },
  };
}
