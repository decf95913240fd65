// What a composition has opened so far, closed in reverse: AsyncDisposableStack, which Node 20 lacks.

export class Disposal implements AsyncDisposable {
  #closers: (() => void | PromiseLike<void>)[] = [];

  use<T extends AsyncDisposable | null>(resource: T): T {
    if (resource) this.#closers.push(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  /** Each is tried, whatever the others did; the first failure is thrown at the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closers = this.#closers.toReversed();
    this.#closers = [];
    const failures: unknown[] = [];
    for (const close of closers) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
