// Who may begin now, who waits a moment, and who is told to come back later. The latter have had nothing run for them (P6),
// so stock clients repeat it by themselves: a socket is closed with 1013, anything else answered 503 with Retry-After.
import type { ServerResponse } from 'node:http';
import type { AdmissionLimits, GateLimits } from '../config.js';
import { rateLimited, retrySoonMs, type DomainError } from '../domain/errors.js';
import type { Metrics } from '../metrics.js';

/** Gives the place to the next; again: nothing. */
export type Leave = () => void;

export class TryLater extends Error {
  override readonly name = 'TryLater';
  readonly retryAfterMs = retrySoonMs();

  constructor() {
    super('this node is busy: nothing was done, try again');
  }
}

/** For an answer of GraphQL: as honest as 503, for nothing ran. */
export const toRateLimited = ({ retryAfterMs }: TryLater): DomainError => rateLimited(retryAfterMs);

/** So many inside at once, so many before the door, and none of these for longer than its patience lasts. */
export class Gate {
  readonly #limits: GateLimits;
  #inside = 0;
  /** oldest first */
  readonly #waiting = new Set<() => void>();

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /** @throws TryLater */
  async enter(): Promise<Leave> {
    if (this.#inside < this.#limits.atOnce) this.#inside++;
    else await this.#wait();
    let isIn = true;
    return () => {
      if (isIn) this.#next();
      isIn = false;
    };
  }

  #wait(): Promise<void> {
    const { maxWaiting, maxWaitMs } = this.#limits;
    if (this.#waiting.size >= maxWaiting) return Promise.reject(new TryLater());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(enter);
        reject(new TryLater());
      }, maxWaitMs);
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.add(enter);
    });
  }

  /** A place that is given on never becomes free in between: nobody new overtakes those who wait. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) this.#inside--;
    else {
      this.#waiting.delete(first);
      first();
    }
  }
}

const lookEveryMs = 100;

/** How late this process gets to its work, smoothed, so that one long pause does not turn everybody away. */
class Lateness implements Disposable {
  ms = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    let dueAt = performance.now() + lookEveryMs;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.ms = (2 * this.ms + Math.max(0, now - dueAt)) / 3;
      dueAt = now + lookEveryMs;
    }, lookEveryMs).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

export class Admission implements AsyncDisposable {
  readonly #handshakes: Gate;
  readonly #requests: Gate;
  readonly #maxLatenessMs: number;
  readonly #lateness = new Lateness();
  readonly #metrics: Metrics;

  constructor({ handshakes, requests, maxLatenessMs }: AdmissionLimits, metrics: Metrics) {
    this.#handshakes = new Gate(handshakes);
    this.#requests = new Gate(requests);
    this.#maxLatenessMs = maxLatenessMs;
    this.#metrics = metrics;
  }

  /**
   * A socket or event stream that begins: until it is registered, not for its life. Waits less than clients and
   * connectionInitWaitTimeout do.
   * @throws TryLater
   */
  handshake(kind: 'socket' | 'stream'): Promise<Leave> {
    return this.#admit(this.#handshakes, kind);
  }

  /** @throws TryLater */
  request(): Promise<Leave> {
    return this.#admit(this.#requests, 'request');
  }

  async #admit(gate: Gate, kind: 'socket' | 'stream' | 'request'): Promise<Leave> {
    try {
      if (this.#lateness.ms > this.#maxLatenessMs) throw new TryLater();
      return await gate.enter();
    } catch (error) {
      this.#metrics.turnedAway(kind);
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#lateness[Symbol.dispose]();
    return Promise.resolve();
  }
}

/** No `errors` in the body: with them, clients would take it for an answer of GraphQL and not try again. */
export function answerTryLater(res: ServerResponse, { message, retryAfterMs }: TryLater): void {
  res.writeHead(503, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'retry-after': String(Math.ceil(retryAfterMs / 1_000)),
  });
  res.end(`${JSON.stringify({ error: message, retryable: true, retryAfterMs })}\n`);
}
