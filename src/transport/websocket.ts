// Subscriptions over WebSocket (graphql-transport-ws): who may connect, when a socket is closed and with which code (P5).
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { getOperationAST, type DocumentNode, type ExecutionArgs, type GraphQLError, type GraphQLSchema } from 'graphql';
import type { Context as SocketState, OperationResult, SubscribePayload } from 'graphql-ws';
import { useServer } from 'graphql-ws/use/ws';
import type { Logger } from 'pino';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Connection, Connections } from '../domain/connections.js';
import type { Authentication } from '../domain/devices.js';
import { badInput, DomainError, overLimit } from '../domain/errors.js';
import type { Metrics } from '../metrics.js';
import { logSocket } from './access-log.js';
import type { Authenticator } from './auth.js';
import { withoutHttp, type ErrorGate } from './errors.js';
import { newNotes, noteCodes, type Notes } from './operations.js';
import type { OriginRule } from './origins.js';
import type { GraphQLEngine } from './yoga.js';

const maxPayload = 64 * 1024;
const maxOperations = 50;
const initTimeoutMs = 3_000;
const pingEveryMs = 12_000;

const closes = { refused: 4401, tryLater: 1013, restart: 1012 } as const;

export interface WebSocketOptions {
  readonly engine: GraphQLEngine;
  readonly authenticator: Authenticator;
  readonly connections: Connections;
  readonly gate: ErrorGate;
  readonly isAllowed: OriginRule;
  readonly log: Logger;
  readonly metrics: Metrics;
}
export interface WebSockets {
  /** Asks every client to come back elsewhere; who does not hang up is hung up on after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** What is known of one socket. */
interface Extra extends Record<PropertyKey, unknown> {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  auth?: Authentication;
  connection?: Connection;
}
/** What its line in the log will say. */
const notesOf = new WeakMap<WebSocket, Notes>();
type Socket = SocketState<Record<string, unknown>, Extra>;

export function attachWebSockets(http: Server, options: WebSocketOptions): WebSockets {
  const { connections, gate } = options;
  const server = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
  http.on('upgrade', (request, socket, head) => {
    upgrade(server, options, { request, socket, head });
  });
  useServer<Record<string, unknown>, Extra>(
    {
      connectionInitWaitTimeout: initTimeoutMs,
      isProd: true, // else an error's message becomes the reason of a close
      execute: () => ({ errors: [] }), // never: see requireSubscription
      subscribe: (args) => (args as Prepared).subscribe(args),
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

async function connect({ authenticator, connections, log }: WebSocketOptions, { connectionParams, extra }: Socket) {
  const { socket } = extra;
  try {
    const auth = await authenticator.ofSocket(connectionParams);
    if (auth.viewer?.kind !== 'device') {
      socket.close(closes.refused, reasonOf(auth.refusal));
      return false;
    }
    const connection = await connections.open(auth.viewer, (reason) => {
      socket.close(closes.refused, reason);
    });
    extra.auth = auth;
    extra.connection = connection;
    // closed while we waited: nobody will say so again
    if (socket.readyState === socket.CLOSED) connections.release(connection);
    return socket.readyState === socket.OPEN;
  } catch (error) {
    // one that connects too often is no news (P3)
    if (!(error instanceof DomainError)) log.warn({ err: error }, 'a socket could not be accepted');
    socket.close(closes.tryLater, 'Try Again Later');
    return false;
  }
}

function reasonOf(refusal: DomainError | null): 'REVOKED' | 'STALE_INSTALL' | 'UNAUTHENTICATED' {
  if (refusal?.code === 'STALE_INSTALL') return 'STALE_INSTALL';
  return refusal?.facts['reason'] === 'REVOKED' ? 'REVOKED' : 'UNAUTHENTICATED';
}

/** graphql-ws hands what we prepared on to `subscribe`. */
interface Prepared extends ExecutionArgs {
  readonly subscribe: (args: ExecutionArgs) => OperationResult;
}

/** Must not throw: that would close the socket and every other subscription on it. */
async function prepare(
  options: WebSocketOptions,
  socket: Socket,
  payload: SubscribePayload,
): Promise<Prepared | GraphQLError[]> {
  const requestId = randomUUID();
  const notes = notesOf.get(socket.extra.socket) ?? newNotes();
  const refuse = (given: readonly unknown[]) => {
    const errors = given.map((error) => withoutHttp(options.gate(error, requestId)));
    noteCodes(notes, errors);
    return errors;
  };
  try {
    if (Object.keys(socket.subscriptions).length > maxOperations) {
      throw overLimit('one socket', maxOperations, 'operations at a time');
    }
    const run = enveloped(options.engine, socket.extra, payload, { requestId, notes });
    const document = run.parse(payload.query);
    const errors = run.validate(run.schema, document);
    if (errors.length > 0) return refuse(errors);
    requireSubscription(document, payload.operationName);
    return {
      schema: run.schema,
      document,
      operationName: payload.operationName ?? null,
      variableValues: payload.variables ?? null,
      contextValue: await run.contextFactory(),
      subscribe: async (args) => {
        try {
          return await run.subscribe(args);
        } catch (error) {
          return { errors: refuse([error]) };
        }
      },
    };
  } catch (error) {
    return refuse([error]);
  }
}

/** The engine's functions with its plugins around them, as far as we use them; its own type leaves them open. */
interface Enveloped {
  readonly schema: GraphQLSchema;
  readonly parse: (source: string) => DocumentNode;
  readonly validate: (schema: GraphQLSchema, document: DocumentNode) => readonly GraphQLError[];
  readonly contextFactory: () => Promise<unknown>;
  readonly subscribe: (args: ExecutionArgs) => Promise<Awaited<OperationResult>>;
}

function enveloped(
  engine: GraphQLEngine,
  { auth, connection }: Extra,
  params: SubscribePayload,
  told: { readonly requestId: string; readonly notes: Notes },
): Enveloped {
  // plugins look for a request
  const request = new engine.fetchAPI.Request('http://tidemark/graphql', { method: 'POST' });
  return engine.getEnveloped({ auth, connection, ...told, request, params }) as Enveloped;
}

/** Queries and mutations have HTTP, where limits, logs and status codes are at home. */
function requireSubscription(document: ExecutionArgs['document'], name: string | null | undefined): void {
  const operation = getOperationAST(document, name);
  if (!operation) throw badInput('operationName names no operation of the document');
  if (operation.operation !== 'subscription') {
    throw badInput(`only subscriptions over WebSocket: send a ${operation.operation} over HTTP`);
  }
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
