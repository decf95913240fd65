// The embedded Postgres' data and password, made once. The directory `cluster` appears by one rename, so it is whole or
// not there, whether processes start at the same time or one is killed in the middle.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Binaries } from './embedded-binaries.js';
import { asAccount } from './embedded-home.js';
import type { Account, Home } from './embedded-home.js';

export interface Cluster {
  account: Account | undefined;
  /** Postgres' own data directory. */
  data: string;
  logFile: string;
  user: string;
  password: string;
}

const USER = 'tidemark';
const ABANDONED_MS = 600_000;

export async function requireCluster(
  home: Home,
  binaries: Binaries,
  log: (line: string) => void,
  sync: boolean,
): Promise<Cluster> {
  const dir = path.join(home.dir, 'cluster');
  const data = path.join(dir, 'data');
  const readVersion = () => readFile(path.join(data, 'PG_VERSION'), 'utf8').catch(() => undefined);
  let version = await readVersion();
  if (version === undefined) {
    log(`creating the database cluster in ${home.dir}`);
    await removeAbandoned(home.dir);
    await create(home, dir, binaries, sync);
    version = await readVersion();
  }
  if (version?.trim() !== binaries.version.split('.')[0]) {
    throw new Error(
      `${home.dir} holds data of Postgres ${version?.trim() ?? '?'}, but this is ${binaries.version}: dump and restore them, or set DATABASE_URL`,
    );
  }
  const password = await readFile(path.join(dir, 'password'), 'utf8');
  return { account: home.account, data, logFile: path.join(home.dir, 'postgres.log'), user: USER, password };
}

async function create(home: Home, dir: string, binaries: Binaries, sync: boolean): Promise<void> {
  const owner = home.account;
  const fresh = await mkdtemp(path.join(home.dir, 'new-'));
  const passwordFile = path.join(fresh, 'password');
  try {
    await writeFile(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600 });
    if (owner) for (const file of [fresh, passwordFile]) await chown(file, owner.uid, owner.gid);
    // The same order and letter case on every machine, whatever its locale.
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
    const access = ['-U', USER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
    const args = ['-D', path.join(fresh, 'data'), ...access, ...locale, '--no-instructions'];
    await promisify(execFile)(binaries.initdb, sync ? args : [...args, '--no-sync'], asAccount(home.account));
    await rename(fresh, dir);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return; // another process was faster: its cluster is ours too
    const reason = stderr?.split('\n').find((line) => line.includes('error:')) ?? (error as Error).message;
    throw new Error(`cannot create a database cluster in ${home.dir}: ${reason}`, { cause: error });
  }
}

/** Half-made clusters of processes that were killed. */
async function removeAbandoned(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    const file = path.join(home, name);
    if (!name.startsWith('new-')) continue;
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > ABANDONED_MS) await rm(file, { recursive: true, force: true });
  }
}
