// One line for each HTTP request, two for each socket. What a client wrote is not in them: no body, no variables, no
// document, no query string, no header, and of paths only those that exist.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import type { Notes } from './operations.js';

/** Asked by machines every few seconds. */
const probes: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const facts = ({ fields, codes }: Notes, startedAt: number) => ({
  fields: [...fields],
  ...(codes.size > 0 ? { codes: [...codes] } : {}),
  ms: Math.round(performance.now() - startedAt),
});

export interface Request {
  readonly requestId: string;
  /** null: none of ours */
  readonly path: string | null;
  readonly notes: Notes;
}

/** Written when the answer has been sent, or its client has gone. */
export function logRequest(
  log: Logger,
  { method }: IncomingMessage,
  res: ServerResponse,
  { requestId, path, notes }: Request,
): void {
  const startedAt = performance.now();
  const level = path !== null && probes.has(path) ? 'debug' : 'info';
  if (!log.isLevelEnabled(level)) return;
  res.once('close', () => {
    const status = res.headersSent ? res.statusCode : null;
    const cut = res.writableFinished ? {} : { cut: true };
    log[level]({ requestId, method, path, status, ...facts(notes, startedAt), ...cut }, 'request');
  });
}

/** `code` is the one that the socket was closed with, by either side. */
export function logSocket(log: Logger, socket: WebSocket, { requestId, path, notes }: Request): void {
  const startedAt = performance.now();
  log.info({ requestId, path }, 'socket open');
  socket.once('close', (code: number) => {
    log.info({ requestId, path, code, ...facts(notes, startedAt) }, 'socket closed');
  });
}
