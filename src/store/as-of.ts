// Tokens that name a moment of this database: `<generation>/<pg_snapshot>`, opaque to clients. Each event bears its writing
// transaction, so a token tells what its holder had been shown (markAllRead). A restore makes it void (L8).
import { sql } from './sql.js';

/** Names the snapshot of the statement that it stands in. */
export const asOf = sql`(SELECT g.generation || '/' || pg_current_snapshot() FROM generation g) AS "asOf"`;

export interface Moment {
  readonly generation: string;
  readonly snapshot: string;
}

const form = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/((\d{1,18}):(\d{1,18}):((?:\d{1,18})(?:,\d{1,18})*)?)$/u;
const maxLength = 65_536;

/** Null when it is none. What passes is what Postgres accepts as a pg_snapshot, so that it need not say so with an error. */
export function toMoment(token: string): Moment | null {
  if (token.length > maxLength) return null;
  const [, generation, snapshot, xmin, xmax, running] = form.exec(token) ?? [];
  if (generation === undefined || snapshot === undefined || xmin === undefined || xmax === undefined) return null;
  const ascending = [BigInt(xmin), ...(running?.split(',') ?? []).map(BigInt)];
  const isSorted = ascending.every((xid, at) => at === 0 || (ascending[at - 1] ?? xid) <= xid);
  const [first = 0n, last = 0n, end] = [ascending[0], ascending.at(-1), BigInt(xmax)];
  const isInside = first > 0n && (ascending.length > 1 ? last < end : last <= end);
  return isSorted && isInside ? { generation, snapshot } : null;
}
