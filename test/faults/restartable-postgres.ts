// A Postgres that a test may stop, hard or gently, and start again on the same port and data.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { requireBinaries } from '../../src/store/embedded-binaries.js';
import { requireCluster, type Cluster } from '../../src/store/embedded-cluster.js';
import { asAccount, chooseHome } from '../../src/store/embedded-home.js';
import { migrate } from '../../src/store/migrate.js';
import { leash } from '../support/leash.js';
import { freePort } from '../support/redis.js';

/** As pg_ctl calls them: `immediate` is a crash, the log is replayed at the next start. */
const signals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const;
const START_LIMIT_MS = 60_000;

export interface RestartablePostgres extends AsyncDisposable {
  /** Of a migrated database. */
  readonly url: string;
  stop(how: keyof typeof signals): Promise<void>;
  start(): Promise<void>;
}

export async function startRestartablePostgres(): Promise<RestartablePostgres> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tidemark-faults-'));
  // What a commit has written survives a crash of the server without fsync: only the machine's own crash would lose it.
  const settings = ['fsync=off', 'full_page_writes=off', 'max_connections=100', 'unix_socket_directories='];
  const guard = leash('kill -s INT "$(head -n 1 "$1/cluster/data/postmaster.pid")"; sleep 2; rm -rf "$1"', dataDir);
  const quiet = () => undefined;
  const home = await chooseHome(dataDir, quiet);
  const binaries = await requireBinaries(home, quiet);
  const cluster = await requireCluster(home, binaries, quiet, false);
  const port = await freePort();
  const args = ['-D', cluster.data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1'];
  for (const setting of settings) args.push('-c', setting);
  const url = (database: string) =>
    `postgresql://${cluster.user}:${cluster.password}@127.0.0.1:${String(port)}/${database}`;
  let server = await launch(binaries.postgres, args, cluster, url('postgres'));
  const stop = async (how: keyof typeof signals) => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signals[how]);
    await ended;
  };
  const admin = new pg.Client({ connectionString: url('postgres') });
  await admin.connect();
  await admin.query('CREATE DATABASE tidemark');
  await admin.end();
  await migrate(url('tidemark'));
  return {
    url: url('tidemark'),
    stop,
    start: async () => {
      server = await launch(binaries.postgres, args, cluster, url('postgres'));
    },
    [Symbol.asyncDispose]: async () => {
      await stop('immediate');
      await rm(dataDir, { recursive: true, force: true });
      guard[Symbol.dispose]();
    },
  };
}

/** After a crash the old server's children may hold its memory for a moment: then it is tried again. */
async function launch(program: string, args: string[], { account }: Cluster, url: string): Promise<ChildProcess> {
  const deadline = Date.now() + START_LIMIT_MS;
  while (Date.now() < deadline) {
    const child = spawn(program, args, { ...asAccount(account), stdio: 'ignore' });
    await once(child, 'spawn');
    while (child.exitCode === null && Date.now() < deadline) {
      if (await answers(url)) return child;
      await pause(20);
    }
    child.kill('SIGKILL');
    await pause(50);
  }
  throw new Error(`Postgres did not start in ${String(START_LIMIT_MS)} ms`);
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
