// How a right client asks over HTTP: an answer that may be another one later, or none at all, means to ask again, the next
// time elsewhere, with the same clientId.
import { setTimeout as pause } from 'node:timers/promises';
import { clientOf } from '../support/app.js';
import { Refused } from '../support/world.js';
import type { Balancer } from './cluster.js';
import type { Ledger } from './ledger.js';

const patienceMs = 20_000;
const betweenMs = 100;

export class Http {
  readonly #cluster: Balancer;
  readonly #ledger: Ledger;
  readonly #credential: string;
  readonly #ended: AbortSignal;
  #slot: number;

  constructor(cluster: Balancer, ledger: Ledger, told: { credential: string; slot: number; ended: AbortSignal }) {
    this.#cluster = cluster;
    this.#ledger = ledger;
    this.#credential = told.credential;
    this.#slot = told.slot;
    this.#ended = told.ended;
  }

  /** Until there is an answer. @throws Refused what is no use to repeat, and whatever happens after the end */
  async ask<T>(document: string, variables: Readonly<Record<string, unknown>> = {}): Promise<T> {
    while (true) {
      try {
        return await this.#once<T>(document, variables);
      } catch (error) {
        if (this.#ended.aborted || (error instanceof Refused && error.extensions['retryable'] !== true)) throw error;
        this.#ledger.repeats(nameOf(error));
        if (!(error instanceof Refused)) this.#slot++;
        await pause(betweenMs);
      }
    }
  }

  async #once<T>(document: string, variables: Readonly<Record<string, unknown>>): Promise<T> {
    const response = await clientOf(this.#cluster.urlFrom(this.#slot)).post(
      this.#credential,
      { query: document, variables },
      {},
      AbortSignal.timeout(patienceMs),
    );
    const { data, errors } = (await response.json()) as {
      data?: T;
      errors?: { message: string; extensions: Readonly<Record<string, unknown>> }[];
    };
    const [error] = errors ?? [];
    if (error) throw new Refused(error.message, error.extensions);
    if (data === undefined) throw new Error(`HTTP ${String(response.status)}`);
    return data;
  }
}

function nameOf(error: unknown): string {
  if (error instanceof Refused) return String(error.code);
  const { name, message, cause } = error as Error & { cause?: { code?: string } };
  if (message.startsWith('HTTP ')) return message;
  return name === 'TimeoutError' ? 'no answer' : (cause?.code ?? message);
}
