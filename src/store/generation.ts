// Which life of the database this is: names the hint channels, voids tokens and cursors of another life (L8).
import { row, sql, type Db } from './sql.js';

export const generation = (db: Db) => ({
  async current(): Promise<string> {
    const { generation: id } = await db.generation.findFirstOrThrow({ select: { generation: true } });
    return id;
  },

  /** After a restore: every log a new epoch, no position above its head. In a transaction; takes as long as it takes. */
  async begin(): Promise<string> {
    await db.$executeRaw(sql`/* generation.begin */ SET LOCAL statement_timeout = 0`);
    const { id } = await row<{ id: string }>(db, sql`/* generation.begin */ SELECT begin_generation()::text AS id`);
    return id;
  },
});
