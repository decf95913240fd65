// Holds rows as a running transaction would, so that an operation of the service can be made to wait for them.
import pg from 'pg';

export interface HeldLock extends AsyncDisposable {
  letGo(): Promise<void>;
}

/** @param select an SQL SELECT of the rows; they are locked as the service locks them, until let go */
export async function holdRows(databaseUrl: string, select: string, values: readonly unknown[]): Promise<HeldLock> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  const { rowCount } = await client.query(`${select} FOR NO KEY UPDATE`, [...values]);
  if (!rowCount) throw new Error(`no rows to hold: ${select}`);
  let ended: Promise<void> | null = null;
  const letGo = () => (ended ??= client.end());
  return { letGo, [Symbol.asyncDispose]: letGo };
}
