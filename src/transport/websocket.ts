// Subscriptions over WebSocket (graphql-transport-ws): who may connect, when a socket is closed and with which code (P5).
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { useServer } from 'graphql-ws/use/ws';
import type { Logger } from 'pino';
import { WebSocketServer, type WebSocket } from 'ws';
import type { CloseReason, Connections } from '../domain/connections.js';
import { DomainError } from '../domain/errors.js';
import type { Metrics } from '../metrics.js';
import { logSocket } from './access-log.js';
import { TryLater } from './admission.js';
import { withoutHttp } from './errors.js';
import { newNotes } from './operations.js';
import type { OriginRule } from './origins.js';
import {
  notesOf,
  prepare,
  type Extra,
  type Prepared,
  type Socket,
  type SocketOperationsOptions,
} from './socket-operations.js';

const initTimeoutMs = 3_000;
const pingEveryMs = 12_000;
const serverOptions = {
  noServer: true,
  maxPayload: 64 * 1024,
  perMessageDeflate: false,
  closeTimeout: 5_000, // one that is dead never says goodbye
};

const closes = { refused: 4401, tryLater: 1013, restart: 1012 } as const;
const tryLater = 'Try Again Later';

export interface WebSocketOptions extends SocketOperationsOptions {
  readonly connections: Connections;
  readonly isAllowed: OriginRule;
  readonly log: Logger;
  readonly metrics: Metrics;
}
export interface WebSockets {
  /** Asks every client to come back elsewhere; who does not hang up is hung up on after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export function attachWebSockets(http: Server, options: WebSocketOptions): WebSockets {
  const { connections, gate } = options;
  const server = new WebSocketServer(serverOptions);
  http.on('upgrade', (request, socket, head) => {
    upgrade(server, options, { request, socket, head });
  });
  useServer<Record<string, unknown>, Extra>(
    {
      connectionInitWaitTimeout: initTimeoutMs,
      isProd: true, // else an error's message becomes the reason of a close
      execute: (args) => (args as Prepared).run(args),
      subscribe: (args) => (args as Prepared).run(args),
      onConnect: (socket) => connect(options, socket),
      onClose: ({ extra }) => {
        if (extra.connection) connections.release(extra.connection);
      },
      onSubscribe: (socket, _, payload) => prepare(options, socket, payload),
      // what the engine did not clean already: errors of graphql-ws itself
      onError: (_, __, ___, errors) => errors.map((error) => withoutHttp(gate(error, randomUUID())).toJSON()),
    },
    server,
    pingEveryMs,
  );
  return { close: (graceMs) => closeAll(server, graceMs) };
}

function upgrade(
  server: WebSocketServer,
  { isAllowed, log, metrics }: WebSocketOptions,
  { request, socket, head }: { request: IncomingMessage; socket: Duplex; head: Buffer },
): void {
  // Node has taken its own listener off: a client that resets now would end the process
  socket.on('error', () => socket.destroy());
  const path = request.url?.split('?')[0];
  const status = path !== '/graphql' ? '404 Not Found' : isAllowed(request.headers.origin) ? null : '403 Forbidden';
  if (status !== null) {
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    return;
  }
  server.handleUpgrade(request, socket, head, (client) => {
    const notes = newNotes();
    notesOf.set(client, notes);
    metrics.socketOpened();
    client.once('close', () => {
      metrics.socketClosed();
    });
    logSocket(log, client, { requestId: randomUUID(), path: '/graphql', notes });
    server.emit('connection', client, request);
    // ws has closed the socket with the right code; graphql-ws would only print the error
    client.removeAllListeners('error');
    client.on('error', (error) => {
      log.debug({ err: error }, 'a socket broke');
    });
  });
}

async function connect(options: WebSocketOptions, state: Socket): Promise<boolean> {
  const { socket } = state.extra;
  try {
    const leave = await options.admission.handshake('socket');
    try {
      return await introduce(options, state);
    } finally {
      leave();
    }
  } catch (error) {
    // one that connects too often is no news (P3)
    if (!(error instanceof DomainError || error instanceof TryLater))
      options.log.warn({ err: error }, 'a socket could not be accepted');
    socket.close(closes.tryLater, tryLater);
    return false;
  }
}

async function introduce({ authenticator, connections }: WebSocketOptions, { connectionParams, extra }: Socket) {
  const { socket } = extra;
  const isOpen = () => socket.readyState === socket.OPEN;
  if (!isOpen()) return false; // gone while it waited
  const auth = await authenticator.ofSocket(connectionParams);
  if (auth.viewer?.kind !== 'device') {
    socket.close(closes.refused, reasonOf(auth.refusal));
    return false;
  }
  const connection = await connections.open(auth.viewer, (reason) => {
    closeFor(socket, reason);
  });
  extra.auth = auth;
  extra.connection = connection;
  // closed while we waited: nobody will say so again
  if (!isOpen()) connections.release(connection);
  return isOpen();
}

function closeFor(socket: WebSocket, reason: CloseReason): void {
  if (reason === 'TOO_MANY') socket.close(closes.tryLater, tryLater);
  else socket.close(closes.refused, reason);
}

function reasonOf(refusal: DomainError | null): 'REVOKED' | 'STALE_INSTALL' | 'UNAUTHENTICATED' {
  if (refusal?.code === 'STALE_INSTALL') return 'STALE_INSTALL';
  return refusal?.facts['reason'] === 'REVOKED' ? 'REVOKED' : 'UNAUTHENTICATED';
}

async function closeAll(server: WebSocketServer, graceMs: number): Promise<void> {
  const gone = [...server.clients].map((client) => new Promise((resolve) => client.once('close', resolve)));
  for (const client of server.clients) client.close(closes.restart, 'Service Restart');
  const timer = setTimeout(() => {
    for (const client of server.clients) client.terminate();
  }, graceMs);
  await Promise.all(gone);
  clearTimeout(timer);
  server.close();
}
