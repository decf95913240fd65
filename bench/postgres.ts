// The Postgres of a run, in a temporary directory and gone afterwards however the process ends. Each bench has a migrated
// database of its own in it.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/store/embedded.js';
import { migrate } from '../src/store/migrate.js';
import { leash } from '../test/support/leash.js';

export interface BenchDatabase extends AsyncDisposable {
  readonly url: string;
  /** connections with the settings of the store's own */
  readonly pool: pg.Pool;
}
export interface BenchServer extends AsyncDisposable {
  database(name: string, poolMax: number): Promise<BenchDatabase>;
}

/** @param fsync false: commits do not wait for the disk, which shows the work itself and is harder on us */
export async function startBenchServer(fsync: boolean): Promise<BenchServer> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tidemark-bench-'));
  const guard = leash('kill -s INT "$(head -n 1 "$1/cluster/data/postmaster.pid")"; sleep 2; rm -rf "$1"', dataDir);
  const sync = fsync ? 'on' : 'off';
  const settings = { fsync: sync, full_page_writes: sync, max_connections: '100', shared_buffers: '512MB' };
  const server = await startEmbeddedPostgres({ dataDir, settings: { ...settings, max_wal_size: '4GB' } });
  await migrate(server.url); // this database is the template of all others
  return {
    database: (name, poolMax) => openDatabase(server.url, name, poolMax),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
      guard[Symbol.dispose]();
    },
  };
}

async function openDatabase(template: string, name: string, poolMax: number): Promise<BenchDatabase> {
  const url = new URL(template);
  url.pathname = '/postgres';
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name} TEMPLATE ${new URL(template).pathname.slice(1)}`);
  await admin.end();
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: poolMax, options: '-c jit=off' });
  pool.on('error', () => undefined); // the server may end before an idle connection has
  return { url: url.href, pool, [Symbol.asyncDispose]: () => pool.end() };
}
