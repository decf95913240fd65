// A Postgres of a bench's own, migrated, in a temporary directory, gone afterwards however the process ends.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/store/embedded.js';
import { migrate } from '../src/store/migrate.js';
import { leash } from '../test/support/leash.js';

export interface BenchPostgres extends AsyncDisposable {
  readonly url: string;
  /** connections with the settings of the store's own; for one at a time, `pool.connect()` */
  readonly pool: pg.Pool;
}

/** @param fsync false: commits do not wait for the disk, which shows the work itself and is harder on us */
export async function startBenchPostgres(fsync: boolean, poolMax: number): Promise<BenchPostgres> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tidemark-bench-'));
  const guard = leash('kill -s INT "$(head -n 1 "$1/cluster/data/postmaster.pid")"; sleep 2; rm -rf "$1"', dataDir);
  const sync = fsync ? 'on' : 'off';
  const settings = { fsync: sync, full_page_writes: sync, max_connections: '100', shared_buffers: '512MB' };
  const server = await startEmbeddedPostgres({ dataDir, settings: { ...settings, max_wal_size: '4GB' } });
  await migrate(server.url);
  const pool = new pg.Pool({ connectionString: server.url, max: poolMax, options: '-c jit=off' });
  return {
    url: server.url,
    pool,
    [Symbol.asyncDispose]: async () => {
      await pool.end();
      await server[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
      guard[Symbol.dispose]();
    },
  };
}
