// Work that a node does again and again: one run at a time, and a failed one is made up for by the next.
import type { Logger } from 'pino';

export interface RecurringOptions {
  readonly everyMs: number;
  readonly log: Logger;
  /** what the log says of a run that failed */
  readonly failed: string;
}

export class Recurring implements AsyncDisposable {
  readonly #work: () => Promise<void>;
  readonly #options: RecurringOptions;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;

  constructor(work: () => Promise<void>, options: RecurringOptions) {
    this.#work = work;
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), options.everyMs).unref();
  }

  /** Joins the run that is under way, if there is one. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#work()
      .catch((error: unknown) => {
        this.#options.log.warn({ err: error }, this.#options.failed);
      })
      .finally(() => (this.#running = null));
    return this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}
