// The publishing side of the Redis bus. Sending never throws, waits or rejects (H1); a hint that did not get through is
// a debt, paid by telling every node to resync as soon as Redis answers again (H3).
import type { Metrics } from '../metrics.js';
import type { BusLog } from './bus.js';

/** Publishes without an answer, beyond which hints are not sent but owed. */
const MAX_UNANSWERED = 50_000;

export interface OwingPublisherOptions {
  readonly publish: (channel: string, message: string) => Promise<void>;
  /** whoever listens here resyncs all its sinks, whatever the message says */
  readonly resyncChannel: string;
  readonly log: BusLog;
  readonly metrics?: Metrics | undefined;
}

export class OwingPublisher {
  readonly #publish: (channel: string, message: string) => Promise<void>;
  readonly #resyncChannel: string;
  readonly #log: BusLog;
  readonly #metrics: Metrics | undefined;
  #unanswered = 0;
  #owes = false;
  #closed = false;

  constructor({ publish, resyncChannel, log, metrics }: OwingPublisherOptions) {
    this.#publish = publish;
    this.#resyncChannel = resyncChannel;
    this.#log = log;
    this.#metrics = metrics;
  }

  send(channel: string, message: string): void {
    if (this.#closed) return;
    if (this.#unanswered >= MAX_UNANSWERED) {
      this.#failed(new Error('too many hints wait for Redis'));
      return;
    }
    this.#unanswered++;
    this.#publish(channel, message).then(
      () => this.#unanswered--,
      (error: unknown) => {
        this.#unanswered--;
        this.#failed(error);
      },
    );
  }

  /** The connection broke: what is unanswered may not have arrived. Not left to the timeout, which comes later. */
  broken(): void {
    if (this.#unanswered > 0) this.#owe(new Error('the connection broke'));
  }

  /** Sends the node's own sign of life; where that works, the debt can be paid. */
  async beat(channel: string): Promise<void> {
    try {
      await this.#publish(channel, '{}');
    } catch {
      return; // the connection has logged its own error
    }
    if (!this.#owes || this.#closed) return;
    this.#owes = false; // before sending: a failure from now on, of this message too, is a new debt
    this.send(this.#resyncChannel, '{}');
  }

  close(): void {
    this.#closed = true;
  }

  #failed(error: unknown): void {
    this.#metrics?.publishFailed();
    this.#owe(error);
  }

  #owe(error: unknown): void {
    if (this.#owes || this.#closed) return;
    this.#owes = true;
    this.#log.warn({ err: error }, 'a hint could not be published; every node will resync once Redis answers');
  }
}
