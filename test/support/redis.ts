// The Redis of the tests: TEST_REDIS_URL, else a server of our own on a free port that keeps nothing on disk.
// Tests that kill, freeze or restart Redis take a private one with startRedis().
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { inject } from 'vitest';
import { leash } from './leash.js';

export interface TestRedis extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** SIGKILL unless told otherwise; resolves when the process has ended (SIGSTOP and SIGCONT: at once). */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** On the same port, empty; ends the old process first if it still runs. */
  restart(): Promise<void>;
  /** FLUSHALL. */
  flush(): Promise<void>;
}

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
  }
}

const START_LIMIT_MS = 10_000;

/** The Redis that all tests of a run share: use names of your own in it. */
export function sharedRedisUrl(): string {
  return inject('redisUrl');
}

/** For the global setup. */
export async function startSharedRedis(): Promise<{ url: string } & AsyncDisposable> {
  const url = process.env['TEST_REDIS_URL'];
  return url ? { url, [Symbol.asyncDispose]: () => Promise.resolve() } : startRedis();
}

/** A private server. */
export async function startRedis(): Promise<TestRedis> {
  const program = requireProgram();
  const port = await freePort();
  let server = await launch(program, port);
  return {
    url: `redis://127.0.0.1:${String(port)}`,
    get pid() {
      return server.pid;
    },
    kill: (signal = 'SIGKILL') => server.kill(signal),
    restart: async () => {
      await server.kill('SIGKILL');
      server = await launch(program, port);
    },
    flush: async () => {
      if (!(await tell(port, 'FLUSHALL')).startsWith('+OK')) throw new Error('Redis refused to be flushed');
    },
    [Symbol.asyncDispose]: () => server.kill('SIGKILL'),
  };
}

async function launch(program: string, port: number) {
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no'];
  const child = spawn(program, args, { cwd: os.tmpdir(), stdio: 'ignore' });
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  const guard = leash('kill -s KILL "$1"', String(pid));
  const ended = once(child, 'exit').finally(() => {
    guard[Symbol.dispose](); // its number may soon be another program's
  });
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal); // does nothing once it has ended
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await ended;
  };
  await untilAnswers(child, port);
  return { pid, kill };
}

async function tell(port: number, command: string): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    socket.write(`${command}\r\n`);
    return String((await once(socket, 'data'))[0]);
  } finally {
    socket.destroy();
  }
}

async function untilAnswers(child: ChildProcess, port: number): Promise<void> {
  const deadline = Date.now() + START_LIMIT_MS;
  while (child.exitCode === null && Date.now() < deadline) {
    if ((await tell(port, 'PING').catch(() => '')).startsWith('+PONG')) return;
    await pause(20);
  }
  throw new Error(`redis-server on port ${String(port)} did not start`);
}

export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function findProgram(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  const files = ['redis-server', 'valkey-server'].flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function requireProgram(): string {
  const found = findProgram();
  if (found) return found;
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (mayInstall && process.env['TIDEMARK_TEST_INSTALL'] !== '0') {
    console.error('the tests need Redis: apt-get install redis-server (TIDEMARK_TEST_INSTALL=0 forbids this)');
    // RUNLEVEL=1: only the program is wanted, not a system service.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    try {
      execFileSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' });
      execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], {
        env,
        stdio: 'ignore',
      });
    } catch {
      // said below
    }
  }
  const installed = findProgram();
  if (installed) return installed;
  throw new Error('these tests need Redis: put redis-server or valkey-server on the PATH, or set TEST_REDIS_URL');
}
