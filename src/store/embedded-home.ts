// Where the embedded Postgres may live and as whom it runs. Postgres refuses to run as root, so root lends it an existing
// account, and then data and binaries must lie where that account can go. Found out by trying as that account.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, realpath, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

export interface Account {
  uid: number;
  gid: number;
}

export interface Home {
  /** Ours alone: the cluster, its password, the server's log, and the binaries when copied. */
  dir: string;
  /** What Postgres runs as; undefined: as ourselves. */
  account: Account | undefined;
}

/** Nothing of our environment (PG*, LANG, LD_*) may change how the server behaves. */
const ENV = { PATH: '/usr/bin:/bin:/usr/local/bin', LC_ALL: 'C', TZ: 'UTC' };

/** Options for any child that runs as the account. `/` because our own directory may be closed to it. */
export function asAccount(account: Account | undefined, env: Record<string, string> = {}) {
  return { ...account, cwd: '/', env: { ...ENV, ...env } };
}

const run = promisify(execFile);

const isRoot = () => process.getuid?.() === 0;
const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );

async function systemAccount(): Promise<Account> {
  for (const name of ['postgres', 'nobody']) {
    const id = async (flag: string) => Number((await run('id', [flag, name], asAccount(undefined))).stdout);
    try {
      return { uid: await id('-u'), gid: await id('-g') };
    } catch {
      // no such account
    }
  }
  throw new Error('Postgres does not run as root and there is no account `postgres` or `nobody`: set DATABASE_URL');
}

/** Whoever made the cluster keeps it: Postgres starts only as the owner of its data. */
async function ownerOf(dir: string): Promise<Account | undefined> {
  const { uid, gid } = await stat(path.join(dir, 'cluster')).catch(() => ({ uid: 0, gid: 0 }));
  return uid === 0 ? undefined : { uid, gid };
}

/** Makes the directory and answers whether the account gets there; leaves nothing behind if not. */
async function isReachable(dir: string, account: Account): Promise<boolean> {
  const made = await mkdir(dir, { recursive: true }).catch(() => null);
  if (made === null) return false;
  // Whatever our umask: those who may pass cannot list, and the cluster itself is 0700.
  for (let at = dir; at.length >= (made ?? dir).length; at = path.dirname(at)) await chmod(at, 0o711);
  try {
    await run('/bin/sh', ['-c', 'cd "$1"', 'sh', dir], asAccount(account));
    return true;
  } catch {
    if (made !== undefined) await rm(made, { recursive: true });
    return false;
  }
}

/** A place under /var/lib or /tmp counts only when nobody else can have prepared it for us. */
async function isTrusted(dir: string): Promise<boolean> {
  const found = await lstat(dir).catch(() => undefined);
  return !found || (found.isDirectory() && found.uid === 0);
}

async function chooseAsRoot(dataDir: string, log: (line: string) => void): Promise<Home> {
  const hash = createHash('sha256').update(dataDir).digest('hex').slice(0, 8);
  const fallbacks = ['/var/lib', os.tmpdir()].map((base) => path.join(base, `tidemark-${hash}`));
  const candidates = [dataDir];
  for (const dir of fallbacks) if (await isTrusted(dir)) candidates.push(dir);
  // A cluster made earlier wins over a directory that has become reachable since.
  const used = await Promise.all(candidates.map((dir) => exists(path.join(dir, 'cluster'))));
  const ordered = [...candidates.filter((_, i) => used[i]), ...candidates.filter((_, i) => !used[i])];
  for (const dir of ordered) {
    const account = (await ownerOf(dir)) ?? (await systemAccount());
    if (!(await isReachable(dir, account))) continue;
    if (dir !== dataDir) log(`${dataDir} is closed to the account that runs Postgres: using ${dir} instead`);
    return { dir: await realpath(dir), account };
  }
  throw new Error(`the account that runs Postgres can use none of ${candidates.join(', ')}: set DATABASE_URL`);
}

export async function chooseHome(dataDir: string, log: (line: string) => void): Promise<Home> {
  const dir = path.resolve(dataDir);
  if (isRoot()) return chooseAsRoot(dir, log);
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const { uid } = await stat(path.join(dir, 'cluster')).catch(() => stat(dir));
    if (uid !== process.getuid?.()) throw new Error(`it belongs to the account ${String(uid)}`);
    return { dir: await realpath(dir), account: undefined };
  } catch (error) {
    throw new Error(`cannot keep a database in ${dir} (${(error as Error).message}): set DATABASE_URL`, {
      cause: error,
    });
  }
}
