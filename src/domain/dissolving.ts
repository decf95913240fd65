// The job that follows dissolving: writes the end into the members' rows, some at a time, so that nobody waits long for the
// locks (C4). Clients see a dissolved group as left from the first moment; this makes it true of every row, and of `changes`.
// It may stop anywhere and runs on every node: the conversation's lock decides who does the next batch.
import type { ConvId, ConvType } from '../model.js';
import { commit } from './commit.js';
import type { Deps } from './deps.js';

const batch = 500;

export class Dissolving implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;

  constructor(deps: Deps, everyMs: number) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.run(), everyMs).unref();
  }

  /** Until nothing is left, or an error: the next run goes on. */
  run(): Promise<void> {
    this.#running ??= this.#work()
      .catch((error: unknown) => {
        this.#deps.log.warn({ err: error }, 'a dissolved group could not be closed, trying again');
      })
      .finally(() => (this.#running = null));
    return this.#running;
  }

  async #work(): Promise<void> {
    for (;;) {
      const next = await this.#deps.store.groups.dissolving();
      if (next === null) return;
      await closeSome(this.#deps, next);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}

function closeSome(deps: Deps, { id: conv, type }: { readonly id: ConvId; readonly type: ConvType }): Promise<void> {
  return commit(deps, async (tx, tell) => {
    const about = {
      kind: 'conv',
      conv,
      conversationType: type,
      contentType: 'GROUP_DISSOLVE',
      originDevice: null,
    } as const;
    for (const [user, change] of await tx.groups.closeDissolved(conv, batch)) tell([user], { ...about, change });
  });
}
