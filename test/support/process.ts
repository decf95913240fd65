// Tidemark as a process of its own, started as a person would, from the sources.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { leash } from './leash.js';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}
export interface TidemarkProcess extends AsyncDisposable {
  readonly pid: number;
  readonly stdout: () => string;
  readonly ended: Promise<Ended>;
  /** Resolves with what fits in its output; rejects when it ends before that. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** SIGTERM unless told otherwise; resolves when it has ended. */
  kill(signal?: NodeJS.Signals): Promise<Ended>;
}

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
/** Nothing of the test run's own settings reaches it. */
const inherited = ['PATH', 'HOME', 'TMPDIR'];

/** @param built the main.js of a build instead of the sources */
export function startTidemark(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  built?: string,
): TidemarkProcess {
  const base = Object.fromEntries(inherited.map((name) => [name, process.env[name]]));
  const program = built === undefined ? ['--import', 'tsx', main] : [built];
  const child = spawn(process.execPath, [...program, ...args], {
    env: { ...base, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const guard = leash('kill -s TERM "$1"', String(child.pid));
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (texts[name] += chunk.toString()));
  }
  const ended = once(child, 'close').then(([code, signal]): Ended => {
    guard[Symbol.dispose]();
    return { code: code as number | null, signal: signal as NodeJS.Signals | null, ...texts };
  });
  const kill = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    return ended;
  };
  return {
    pid: child.pid ?? 0,
    stdout: () => texts.stdout,
    ended,
    kill,
    until: async (pattern) => {
      for (;;) {
        const found = pattern.exec(texts.stdout) ?? pattern.exec(texts.stderr);
        if (found) return found;
        const changed = Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data')]);
        const end = await Promise.race([changed.then(() => null), ended]);
        if (end) throw new Error(`it has ended: ${JSON.stringify(end)}`);
      }
    },
    [Symbol.asyncDispose]: async () => {
      await kill();
    },
  };
}
