// Zero-setup Postgres: a server of our own on a free port of 127.0.0.1, its data in one directory. It outlives a killed
// process and is then found again. Whoever uses it holds a shared lock in it; the last one to leave stops it.
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { requireBinaries } from './embedded-binaries.js';
import type { Binaries } from './embedded-binaries.js';
import { requireCluster } from './embedded-cluster.js';
import type { Cluster } from './embedded-cluster.js';
import { chooseHome } from './embedded-home.js';
import { isPostmaster, launch, readLockFile, stop } from './embedded-server.js';

export interface EmbeddedPostgres extends AsyncDisposable {
  /** Of the database `tidemark`. */
  readonly url: string;
  /** Where the data really is: not the directory asked for when that is closed to the account that runs Postgres. */
  readonly dataDir: string;
  readonly pid: number;
  /** It was running already; `settings` then had no effect. */
  readonly reused: boolean;
}

export interface EmbeddedOptions {
  dataDir: string;
  log?: (line: string) => void;
  /** Server settings, such as `{ fsync: 'off' }`. */
  settings?: Record<string, string>;
}

/** Being a user of the server: a connection that holds the shared lock for as long as this process lives. */
interface Membership {
  client: pg.Client & { ref(): void; unref(): void };
  pid: number;
  port: number;
}

const START_LIMIT_MS = 60_000; // crash recovery can take a while
const DATABASE = 'tidemark';
/** Advisory lock in the database `postgres`. */
const USERS_LOCK = 7_236_970_002;

export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log = () => undefined, settings = {} } = options;
  const home = await chooseHome(dataDir, log);
  const binaries = await requireBinaries(home, log);
  const cluster = await requireCluster(home, binaries, log, settings['fsync'] !== 'off');
  const { membership, launched } = await joinOrLaunch(cluster, binaries, settings);
  const { client, pid, port } = membership;
  await createDatabase(client);
  client.unref(); // the connection alone keeps no process alive; not earlier, for then nothing else would
  const reused = launched !== pid;
  log(`Postgres ${binaries.version} ${reused ? 'was running' : 'is ready'} on 127.0.0.1:${String(port)}`);
  return {
    url: toUrl(cluster, port, DATABASE),
    dataDir: home.dir,
    pid,
    reused,
    [Symbol.asyncDispose]: () => leave(membership, cluster),
  };
}

const toUrl = ({ user, password }: Cluster, port: number, database: string) =>
  `postgresql://${user}:${password}@127.0.0.1:${String(port)}/${database}`;

async function joinOrLaunch(cluster: Cluster, binaries: Binaries, settings: Record<string, string>) {
  const deadline = Date.now() + START_LIMIT_MS;
  let launched: number | undefined;
  let reason = 'it does not answer';
  while (Date.now() < deadline) {
    const membership = await join(cluster);
    if (membership) return { membership, launched };
    const lock = await readLockFile(cluster);
    if (lock && (await isPostmaster(lock.pid, cluster))) {
      await pause(20); // starting, or stopping
      continue;
    }
    const result = await launch(cluster, binaries, { settings, stalePid: lock?.pid, deadline });
    if (typeof result === 'number') {
      launched = result;
    } else {
      reason = result;
      await pause(50);
    }
  }
  throw new Error(`Postgres did not start in ${String(START_LIMIT_MS)} ms: ${reason} (log: ${cluster.logFile})`);
}

/** Null when no server runs on exactly these data, or when it is about to stop. */
async function join(cluster: Cluster): Promise<Membership | null> {
  const lock = await readLockFile(cluster);
  if (!lock?.port) return null;
  // pg's types leave out ref and unref.
  const client = new pg.Client({
    connectionString: toUrl(cluster, lock.port, 'postgres'),
    connectionTimeoutMillis: 5_000,
    application_name: 'tidemark embedded',
  }) as Membership['client'];
  client.on('error', () => undefined); // the server is gone: whoever queries it next is told
  try {
    await client.connect();
    // The lock file may have come with a copied directory, and its port may be somebody else's by now.
    const { rows } = await client.query<{ ours: boolean; joined: boolean }>(
      `SELECT current_setting('data_directory') = $1 AS ours, pg_try_advisory_lock_shared($2) AS joined`,
      [cluster.data, USERS_LOCK],
    );
    if (rows[0]?.ours && rows[0].joined) {
      return { client, pid: lock.pid, port: lock.port };
    }
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code === '28P01' && (await isPostmaster(lock.pid, cluster))) {
      throw new Error(`the running Postgres refuses the password kept beside ${cluster.data}: ${message}`, {
        cause: error,
      });
    }
    // Anything else: not there, not ready, or not ours.
  }
  await client.end().catch(() => undefined);
  return null;
}

/** Whoever gets the lock for itself was the last one. Giving up the share comes first: of two that leave at the same
 *  time one must succeed. A process that starts meanwhile gets no share and waits for the end. */
async function leave({ client, pid }: Membership, cluster: Cluster): Promise<void> {
  client.ref();
  try {
    if (await isLast(client)) await stop(pid, cluster);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function isLast(client: pg.Client): Promise<boolean> {
  try {
    await client.query('SELECT pg_advisory_unlock_shared($1)', [USERS_LOCK]);
    const { rows } = await client.query<{ last: boolean }>('SELECT pg_try_advisory_lock($1) AS last', [USERS_LOCK]);
    return rows[0]?.last === true;
  } catch {
    return false; // the connection broke: the server is gone, or has crashed and started anew, and others may use it
  }
}

async function createDatabase(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
  if (rowCount) return;
  await client.query(`CREATE DATABASE ${DATABASE}`).catch((error: unknown) => {
    const { code } = error as { code?: string };
    if (code !== '42P04' && code !== '23505') throw error; // made by another process at this moment
  });
}
