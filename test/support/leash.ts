// Test servers must not outlive the test run, even when it is killed: a small shell holds the other end of a pipe and
// acts when the pipe closes, however this process ends.
import { spawn } from 'node:child_process';

/** Runs the shell `commands` with `args` once this process is gone. Dispose when there is nothing left to clean up. */
export function leash(commands: string, ...args: string[]): Disposable {
  const shell = spawn('/bin/sh', ['-c', `cat >/dev/null; ${commands}`, 'sh', ...args], {
    detached: true, // Ctrl-C must not reach it first
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.unref();
  // The pipe is a socket, which may be unreferenced like one.
  (shell.stdin as unknown as { unref(): void }).unref();
  return {
    [Symbol.dispose]: () => {
      shell.kill('SIGKILL');
    },
  };
}
