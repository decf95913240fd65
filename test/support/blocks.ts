// What a statement costs, as pages of the database touched: a count, the same on any machine.
import pg from 'pg';

interface Plan {
  readonly Plan: Readonly<Record<string, number>>;
}

/** Pages touched by each statement once it is warm. What they write is rolled back. */
export async function blocksOf(
  databaseUrl: string,
  statements: readonly (readonly [sql: string, values: readonly unknown[]])[],
): Promise<number[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const blocks = statements.map(() => Infinity);
    // the first turns load plans and set hint bits
    for (let turn = 0; turn < 4; turn++) {
      for (const [at, [sql, values]] of statements.entries()) {
        await client.query('BEGIN');
        const { rows } = await client.query<{ 'QUERY PLAN': readonly Plan[] }>(
          `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`,
          [...values],
        );
        await client.query('ROLLBACK');
        const plan = rows[0]?.['QUERY PLAN'][0]?.Plan ?? {};
        const touched = (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0);
        blocks[at] = Math.min(blocks[at] ?? Infinity, touched);
      }
    }
    return blocks;
  } finally {
    await client.end();
  }
}
