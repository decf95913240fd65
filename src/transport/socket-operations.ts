// What may be asked over a WebSocket: subscriptions, and everything else only where the operator said so (WS_QUERIES).
import { randomUUID } from 'node:crypto';
import { getOperationAST, type DocumentNode, type ExecutionArgs, type GraphQLError, type GraphQLSchema } from 'graphql';
import type { Context as SocketState, OperationResult, SubscribePayload } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { Connection } from '../domain/connections.js';
import type { Authentication } from '../domain/devices.js';
import { badInput, overLimit } from '../domain/errors.js';
import { toRateLimited, TryLater, type Admission } from './admission.js';
import type { Authenticator } from './auth.js';
import { withoutHttp, type ErrorGate } from './errors.js';
import { newNotes, noteCodes, type Notes } from './operations.js';
import type { GraphQLEngine } from './yoga.js';

const maxOperations = 50;

/** What is known of one socket. */
export interface Extra extends Record<PropertyKey, unknown> {
  readonly socket: WebSocket;
  auth?: Authentication;
  connection?: Connection;
}
export type Socket = SocketState<Record<string, unknown>, Extra>;

/** What a socket's line in the log will say. */
export const notesOf = new WeakMap<WebSocket, Notes>();

export interface SocketOperationsOptions {
  readonly engine: GraphQLEngine;
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  readonly gate: ErrorGate;
  /** queries and mutations too */
  readonly queries: boolean;
}

/** graphql-ws hands what we prepared on to the one that fits the operation. */
export interface Prepared extends ExecutionArgs {
  readonly run: (args: ExecutionArgs) => OperationResult;
}

/** Must not throw: that would close the socket and every other subscription on it. */
export async function prepare(
  options: SocketOperationsOptions,
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
    requireRoom(socket);
    const told = { requestId, notes };
    const { engine, queries } = options;
    const run = enveloped(engine, socket.extra, payload, told);
    const document = run.parse(payload.query);
    const errors = run.validate(run.schema, document);
    if (errors.length > 0) return refuse(errors);
    const isLive = requireAllowed(document, payload.operationName, queries) === 'subscription';
    const work = isLive ? run.subscribe : asRequest(options, socket, payload, told);
    return {
      schema: run.schema,
      document,
      operationName: payload.operationName ?? null,
      variableValues: payload.variables ?? null,
      contextValue: await run.contextFactory(),
      run: async (args) => {
        try {
          return await work(args);
        } catch (error) {
          return { errors: refuse([error]) };
        }
      },
    };
  } catch (error) {
    return refuse([error]);
  }
}

function requireRoom({ subscriptions }: Socket): void {
  if (Object.keys(subscriptions).length > maxOperations) {
    throw overLimit('one socket', maxOperations, 'operations at a time');
  }
}

/** As over HTTP: at the same gate, and the credential is looked up again, for it may have been revoked meanwhile (I5). */
function asRequest(
  { engine, authenticator, admission }: SocketOperationsOptions,
  { connectionParams, extra }: Socket,
  payload: SubscribePayload,
  told: { readonly requestId: string; readonly notes: Notes },
): (args: ExecutionArgs) => Promise<Awaited<OperationResult>> {
  return async (args) => {
    const leave = await admission.request().catch((error: unknown) => {
      throw error instanceof TryLater ? toRateLimited(error) : error;
    });
    try {
      const auth = await authenticator.ofSocket(connectionParams);
      const run = enveloped(engine, { ...extra, auth }, payload, told);
      return await run.execute({ ...args, contextValue: await run.contextFactory() });
    } finally {
      leave();
    }
  };
}

/** The engine's functions with its plugins around them, as far as we use them; its own type leaves them open. */
interface Enveloped {
  readonly schema: GraphQLSchema;
  readonly parse: (source: string) => DocumentNode;
  readonly validate: (schema: GraphQLSchema, document: DocumentNode) => readonly GraphQLError[];
  readonly contextFactory: () => Promise<unknown>;
  readonly subscribe: (args: ExecutionArgs) => Promise<Awaited<OperationResult>>;
  readonly execute: (args: ExecutionArgs) => Promise<Awaited<OperationResult>>;
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

/** Unless configured otherwise queries and mutations have HTTP, where limits, logs and status codes are at home. */
function requireAllowed(
  document: ExecutionArgs['document'],
  name: string | null | undefined,
  queries: boolean,
): 'query' | 'mutation' | 'subscription' {
  const operation = getOperationAST(document, name);
  if (!operation) throw badInput('operationName names no operation of the document');
  if (operation.operation !== 'subscription' && !queries) {
    throw badInput(`only subscriptions over WebSocket: send a ${operation.operation} over HTTP`);
  }
  return operation.operation;
}
