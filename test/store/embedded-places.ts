// For the tests of the embedded Postgres: directories that clean up after themselves, and processes that use a server.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect } from 'vitest';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EMBEDDED = path.join(ROOT, 'src/store/embedded.ts');
export const isRoot = process.getuid?.() === 0;

export interface Place extends AsyncDisposable {
  /** Not there yet. */
  readonly dataDir: string;
  readonly dir: string;
  /** Another directory whose server is to be stopped and which is to be removed at the end. */
  add(dir: string): void;
}

/** The pid in postmaster.pid; undefined when no server runs (or when it was killed, too, but then the file stays). */
export async function serverPid(dataDir: string): Promise<number | undefined> {
  const text = await readFile(path.join(dataDir, 'cluster/data/postmaster.pid'), 'utf8').catch(() => '');
  return Number(text.split('\n')[0]) || undefined;
}

export async function newPlace(mode = 0o711): Promise<Place> {
  const dir = await realpath(await mkdtemp(path.join(os.tmpdir(), 'tidemark-e2e-')));
  await chmod(dir, mode);
  const dataDir = path.join(dir, '.tidemark/postgres');
  const dirs = new Set([dataDir]);
  return {
    dir,
    dataDir,
    add: (other) => dirs.add(other),
    [Symbol.asyncDispose]: async () => {
      for (const each of dirs) {
        const pid = await serverPid(each);
        if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGINT');
        await expect.poll(() => pid !== undefined && isAlive(pid), { timeout: 20_000 }).toBe(false);
        await rm(each, { recursive: true, force: true });
      }
      execFileSync('chmod', ['-R', 'u+rwX', dir]); // whatever a test has closed
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export interface Child {
  readonly server: { url: string; pid: number; reused: boolean; dataDir: string };
  readonly log: string[];
  /** Kills the whole process group, as a terminal or a supervisor would. */
  kill(): Promise<void>;
  /** Lets it end by itself. */
  end(): Promise<void>;
}

export async function startChild(dataDir: string, module = EMBEDDED): Promise<Child> {
  const args = ['--import', 'tsx', path.join(ROOT, 'test/store/embedded-child.ts'), module, dataDir];
  const child = spawn(process.execPath, args, { cwd: ROOT, detached: true });
  const exit = once(child, 'exit');
  const log: string[] = [];
  createInterface(child.stderr).on('line', (line) => log.push(line));
  const first = once(createInterface(child.stdout), 'line');
  await Promise.race([first, exit.then(() => Promise.reject(new Error(log.join('\n'))))]);
  const [line] = (await first) as [string];
  return {
    server: JSON.parse(line) as Child['server'],
    log,
    kill: async () => {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
      await exit;
    },
    end: async () => {
      child.stdin.end();
      expect(await exit).toEqual([0, null]);
    },
  };
}

export async function query(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows[0]?.[0];
  } finally {
    await client.end();
  }
}
