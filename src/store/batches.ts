// Several positions in one statement, each item judged by itself; rows are locked in the order of conversation ids.
import type { ConvId, DeviceViewer, PersonViewer, Seq } from '../model.js';
import type { Moment } from './as-of.js';
import type { Acked } from './delivery.js';
import type { Advance } from './read-state.js';
import { asking, rows, sql, type Db } from './sql.js';

export interface Position {
  readonly conv: ConvId;
  readonly seq: Seq;
}
/** The whole is refused, or an answer for each item in the order asked. */
export type Batch<T> =
  { readonly refused: string; readonly items: null } | { readonly refused: null; readonly items: readonly T[] };
export type AdvancedConv = Advance & { readonly conv: ConvId };

/** A row without an ord refuses the whole. */
function toBatch<T extends { status: string; ord: number | null }>(found: readonly T[]): Batch<T> {
  const whole = found.find(({ ord }) => ord === null);
  if (whole) return { refused: whole.status, items: null };
  return { refused: null, items: found.toSorted((a, b) => (a.ord ?? 0) - (b.ord ?? 0)) };
}

const advanced = sql`ord, conv, status, moved, read, unread, head, conv_type AS "conversationType", change`;
const columns = (positions: readonly Position[]) =>
  sql`${positions.map(({ conv }) => conv)}::uuid[], ${positions.map(({ seq }) => seq)}::bigint[]`;

export const batches = (db: Db) => ({
  async advance(viewer: PersonViewer, positions: readonly Position[]): Promise<Batch<AdvancedConv>> {
    const found = await rows<AdvancedConv & { ord: number | null }>(
      db,
      sql`/* batches.advance */ SELECT ${advanced} FROM mark_read_many(${asking(viewer)}, ${columns(positions)})`,
    );
    return toBatch(found);
  },

  /** What had been seen at that moment, of at most `limit` conversations; those that are left already are not among them. */
  async advanceAll(
    viewer: PersonViewer,
    { generation, snapshot }: Moment,
    limit: number,
  ): Promise<Batch<AdvancedConv> & { readonly complete: boolean }> {
    const found = await rows<AdvancedConv & { ord: number | null; complete: boolean }>(
      db,
      sql`/* batches.advanceAll */
        SELECT ${advanced}, complete
          FROM mark_all_read(${asking(viewer)}, ${generation}::uuid, ${snapshot}::pg_snapshot, ${limit}::int)`,
    );
    return { ...toBatch(found), complete: found[0]?.complete ?? true };
  },

  /** In a transaction: a refusal of the whole is to be rolled back. */
  async ack(viewer: DeviceViewer, positions: readonly Position[]): Promise<Batch<Acked>> {
    const found = await rows<Acked & { ord: number | null }>(
      db,
      sql`/* batches.ack */ SELECT ord, status, delivered, head FROM ack_many(${asking(viewer)}, ${columns(positions)})`,
    );
    return toBatch(found);
  },
});
