// The loggers: JSON lines by pino. Credentials never reach them; details of unexpected errors go here and nowhere else (P2).
import { pino, type DestinationStream, type Logger } from 'pino';

/** Where the errors of drivers quote what they were given: a failing row, the arguments of a Redis command (AUTH). */
const quoting = [
  'err.command',
  'err.detail',
  'err.meta.driverAdapterError.cause.detail',
  'err.meta.driverAdapterError.cause.cause.detail',
];

export interface LogOptions {
  readonly level: string;
  /** stderr leaves stdout to lines for people */
  readonly to?: 'stdout' | 'stderr' | DestinationStream;
}

export function createLog({ level, to = 'stdout' }: LogOptions): Logger {
  const stream = typeof to === 'string' ? pino.destination(to === 'stdout' ? 1 : 2) : to;
  return pino({ level, base: { pid: process.pid }, redact: { paths: quoting, remove: true } }, stream);
}
