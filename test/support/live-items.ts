// What a subscription has brought, waited for in order.

export class Items<T> {
  readonly all: T[] = [];
  #read = 0;
  #ended: Error | null = null;
  #wake: (() => void)[] = [];

  put(item: T): void {
    this.all.push(item);
    this.#wakeAll();
  }

  /** Whoever waits is told why nothing more comes. */
  end(reason: Error): void {
    this.#ended ??= reason;
    this.#wakeAll();
  }

  /** The next one, in order. */
  async next(withinMs = 10_000): Promise<T> {
    const deadline = performance.now() + withinMs;
    while (this.#read >= this.all.length) {
      if (this.#ended) throw this.#ended;
      await this.#change(deadline - performance.now());
    }
    return this.all[this.#read++] as T;
  }

  /** The first from here on that fits; those before it are skipped. */
  async until(fits: (item: T) => boolean, withinMs = 10_000): Promise<T> {
    for (const deadline = performance.now() + withinMs; ;) {
      const item = await this.next(deadline - performance.now());
      if (fits(item)) return item;
    }
  }

  async #change(withinMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#wake.push(resolve);
        timer = setTimeout(
          () => {
            reject(new Error(`nothing more came; so far ${JSON.stringify(this.all)}`));
          },
          Math.max(0, withinMs),
        );
      });
    } finally {
      clearTimeout(timer);
    }
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
