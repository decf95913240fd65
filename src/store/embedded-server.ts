// The embedded server's process: starts a postmaster on a cluster, tells whether one runs, stops it. What is true of it
// stands in postmaster.pid, which Postgres itself keeps; nothing is remembered here.
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Binaries } from './embedded-binaries.js';
import type { Cluster } from './embedded-cluster.js';
import { asAccount } from './embedded-home.js';

export interface LockFile {
  pid: number;
  port: number;
  ready: boolean;
}

const POLL_MS = 10;
const STOP_LIMIT_MS = 30_000;
const MAX_LOG_BYTES = 5_000_000;

/** postmaster.pid, line by line: pid, data directory, start time, port, socket, address, memory, status. */
export async function readLockFile(cluster: Cluster): Promise<LockFile | null> {
  const text = await readFile(path.join(cluster.data, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  return pid > 0 ? { pid, port: Number(lines[3] ?? NaN), ready: lines[7]?.trim() === 'ready' } : null;
}

/** Whether that process is this cluster's postmaster, not a stranger that was given the same number after a crash. */
export async function isPostmaster(pid: number, cluster: Cluster): Promise<boolean> {
  const command =
    process.platform === 'linux'
      ? readFile(`/proc/${String(pid)}/cmdline`, 'utf8')
      : promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).then(({ stdout }) => stdout);
  return (await command.catch(() => '')).includes(cluster.data);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => {
        resolve(port);
      });
    });
  });
}

export interface LaunchOptions {
  settings: Record<string, string>;
  /** Stands in the lock file but is known not to be a postmaster. */
  stalePid: number | undefined;
  deadline: number;
}

/** Gives the pid once the server is ready, or the reason why to look again: another server or the port is in the way. */
export async function launch(cluster: Cluster, binaries: Binaries, options: LaunchOptions): Promise<number | string> {
  // A file, not a pipe: the server may outlive us and must still be able to write.
  const log = await open(cluster.logFile, 'a+', 0o600);
  try {
    if ((await log.stat()).size > MAX_LOG_BYTES) await log.truncate();
    const start = (await log.stat()).size;
    const child = await spawnPostmaster(cluster, binaries, options, log.fd);
    if (await isReady(child, cluster, options.deadline)) return child.pid ?? 0;
    if (child.exitCode === null && child.signalCode === null) return 'it is still starting';
    const { size } = await log.stat();
    const { buffer } = await log.read(Buffer.alloc(Math.max(0, size - start)), 0, null, start);
    const reason = lastWords(buffer.toString(), child.pid);
    if (/already exists|still in use|could not create any TCP/.test(reason)) return reason;
    throw new Error(`Postgres did not start: ${reason} (log: ${cluster.logFile})`);
  } finally {
    await log.close();
  }
}

async function spawnPostmaster(
  cluster: Cluster,
  binaries: Binaries,
  { settings, stalePid }: LaunchOptions,
  output: number,
): Promise<ChildProcess> {
  const args = ['-D', cluster.data, '-p', String(await freePort())];
  const all = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings };
  for (const [name, value] of Object.entries(all)) args.push('-c', `${name}=${value}`);
  // Postgres takes a lock file for true when its pid exists, unless this variable says that the pid is no server's.
  // It still checks the shared memory named there, so a server that does run is safe.
  const env = stalePid === undefined ? {} : { PG_GRANDPARENT_PID: String(stalePid) };
  // detached: Ctrl-C in the terminal reaches only node, which drains first and stops the database last.
  const child = spawn(binaries.postgres, args, {
    ...asAccount(cluster.account, env),
    detached: true,
    stdio: ['ignore', output, output],
  });
  await once(child, 'spawn'); // throws if it cannot even begin
  child.unref();
  return child;
}

async function isReady(child: ChildProcess, cluster: Cluster, deadline: number): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null && Date.now() < deadline) {
    const lock = await readLockFile(cluster);
    if (lock?.ready && lock.pid === child.pid) return true;
    await pause(POLL_MS);
  }
  return false;
}

/** Other servers that are starting write to the same log: only the lines of this process count. */
function lastWords(log: string, pid: number | undefined): string {
  const mine = log.split('\n').filter((line) => line.includes(`[${String(pid)}] FATAL:`));
  const last = mine.at(-1)?.replace(/^.*FATAL:\s*/, '') ?? log.trim().split('\n').at(-1);
  return last === undefined || last === '' ? 'it ended without a word' : last;
}

/** Fast shutdown: rolls back, writes a checkpoint, ends. */
export async function stop(pid: number, cluster: Cluster): Promise<void> {
  // By what it runs, not by the number alone: in a container without an init nobody buries an orphan.
  const isRunning = async () => (await readLockFile(cluster))?.pid === pid && (await isPostmaster(pid, cluster));
  if (await isRunning()) process.kill(pid, 'SIGINT');
  const deadline = Date.now() + STOP_LIMIT_MS;
  while (await isRunning()) {
    if (Date.now() > deadline) throw new Error(`Postgres ${String(pid)} did not stop in ${String(STOP_LIMIT_MS)} ms`);
    await pause(POLL_MS);
  }
}
