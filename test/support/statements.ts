// The SQL that this process's clients send while something happens: seen, not replaced.
import pg from 'pg';

const textOf = (query: unknown): string =>
  typeof query === 'string' ? query : ((query as { text?: string } | null)?.text ?? '');

/** @param tag the comment that opens the statements of one method of the store, such as `messages.seen` */
export async function countStatements(tag: string, work: () => Promise<void>): Promise<number> {
  const prototype = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
  const original = prototype.query;
  let count = 0;
  prototype.query = function (this: unknown, ...args: unknown[]) {
    if (textOf(args[0]).includes(`/* ${tag} */`)) count++;
    return original.apply(this, args);
  };
  try {
    await work();
  } finally {
    prototype.query = original;
  }
  return count;
}
