// The read position: one per (user, conversation), merged by maximum in the statement that writes it (R1, R3).
import type { ConvId, ConvType, PersonViewer, Seq } from '../model.js';
import { asking, row, sql, type Db } from './sql.js';

export interface Advance {
  /** 'ok' or why not; see refusal() */
  readonly status: string;
  /** it rose, or a marked-unread flag was cleared: to be announced (R2, R4) */
  readonly moved: boolean;
  readonly read: Seq;
  readonly unread: number;
  readonly head: Seq;
  readonly conversationType: ConvType;
  /** the number of this change (C2); null unless it moved */
  readonly change: number | null;
}

export const readState = (db: Db) => ({
  /** Raises the position to seq unless it is there already; the answer is of one snapshot. */
  async advance(viewer: PersonViewer, conv: ConvId, seq: Seq): Promise<Advance> {
    return row<Advance>(
      db,
      sql`/* readState.advance */
        SELECT status, moved, read, unread, head, conv_type AS "conversationType", change
          FROM mark_read(${asking(viewer)}, ${conv}::uuid, ${seq}::bigint)`,
    );
  },
});
