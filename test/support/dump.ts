// Everything that the database holds, so that "nothing was changed" can be seen. Tables of the future are in it too.
import type { Pool } from 'pg';

/** All rows of all our tables; without when a device was last seen, which any request may move. */
export async function dump(pool: Pool): Promise<Record<string, unknown>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
      AND relname NOT LIKE '\\_prisma%' ORDER BY relname`,
  );
  const all: Record<string, unknown> = {};
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: unknown }>(
      `SELECT to_jsonb(t) - 'last_seen_at' AS row FROM ${name} t ORDER BY to_jsonb(t)::text`,
    );
    all[name] = rows.map(({ row }) => row);
  }
  return all;
}
