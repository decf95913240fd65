// The loggers: JSON lines by pino. Credentials never reach them; details of unexpected errors go here and nowhere else (P2).
import { pino, type Logger } from 'pino';

export interface LogOptions {
  readonly level: string;
  /** stderr leaves stdout to lines for people */
  readonly to?: 'stdout' | 'stderr';
}

export function createLog({ level, to = 'stdout' }: LogOptions): Logger {
  // a driver's error may hold the command that failed: of Redis, AUTH with its password
  const redact = { paths: ['err.command', 'err.parent.command'], remove: true };
  return pino({ level, redact, base: { pid: process.pid } }, pino.destination(to === 'stdout' ? 1 : 2));
}
