// How the store speaks raw SQL: tagged statements through Prisma, rows with plain numbers.
import { Prisma } from '../generated/prisma/client.js';
import { deviceOf, type PersonViewer } from '../model.js';

/** A Prisma client or the one of a running transaction. */
export type Db = Prisma.TransactionClient;
export type Sql = Prisma.Sql;
export const sql = Prisma.sql;
export const none = Prisma.empty;

// Every bigint of this schema is a count or a position: below 2^53, so a number holds it.
const toPlain = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value);

/** The rows of one statement; int8 columns arrive as numbers. T describes the columns that the statement names. */
export async function rows<T>(db: Db, statement: Prisma.Sql): Promise<T[]> {
  const found = await db.$queryRaw<Record<string, unknown>[]>(statement);
  return found.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, toPlain(value)])) as T);
}

/** The only row of a statement that always answers with one. */
export async function row<T>(db: Db, statement: Prisma.Sql): Promise<T> {
  const [first] = await rows<T>(db, statement);
  if (first === undefined) throw new Error(`no row from ${statement.sql.slice(0, 60)}`);
  return first;
}

/** One row for each key, or null: a row's `ord` is the place of its key, from 1 on (WITH ORDINALITY). */
export async function rowsInOrder<T>(db: Db, keys: readonly unknown[], statement: Prisma.Sql): Promise<(T | null)[]> {
  const found = await rows<T & { readonly ord: number }>(db, statement);
  const byOrd = new Map(found.map(({ ord, ...row }) => [ord, row as T]));
  return keys.map((_, index) => byOrd.get(index + 1) ?? null);
}

/** Who asks, as the functions of the log core take it: user, device or null, presented epoch. */
export function asking(viewer: PersonViewer): Prisma.Sql {
  const device = deviceOf(viewer);
  return sql`${viewer.user}, ${device?.device ?? null}::text, ${device?.installEpoch ?? 0}::int`;
}
