// Test servers must not outlive the test run, even when it is killed: a small shell holds the other end of a pipe and
// acts when the pipe closes, however this process ends.
import { spawn } from 'node:child_process';

/** Ends `pid` with `signal` and removes `directory` once this process is gone. Dispose when done with both. */
export function leash(pid: number, signal: string, directory?: string): Disposable {
  const script = 'cat >/dev/null; kill -s "$1" "$2" 2>/dev/null; if [ -n "$3" ]; then sleep 2; rm -rf "$3"; fi';
  const shell = spawn('/bin/sh', ['-c', script, 'sh', signal, String(pid), directory ?? ''], {
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
