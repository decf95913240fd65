// The SQL that this process's clients send while something happens: seen, not replaced.
import pg from 'pg';

const textOf = (query: unknown): string =>
  typeof query === 'string' ? query : ((query as { text?: string } | null)?.text ?? '');

/** @param tag the comment that opens the statements of one method of the store, such as `messages.seen` */
export async function countStatements(tag: string, work: () => Promise<void>): Promise<number> {
  return (await statementsOf(work)).filter((text) => text.includes(`/* ${tag} */`)).length;
}

/** Every statement, in the order sent. */
export async function statementsOf(work: () => Promise<void>): Promise<string[]> {
  const prototype = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
  const original = prototype.query;
  const seen: string[] = [];
  prototype.query = function (this: unknown, ...args: unknown[]) {
    seen.push(textOf(args[0]));
    return original.apply(this, args);
  };
  try {
    await work();
  } finally {
    prototype.query = original;
  }
  return seen;
}
