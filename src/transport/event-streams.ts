// Subscriptions over server-sent events: each response is a connection of its device, and ends with it (I4, P5).
import type { ServerResponse } from 'node:http';
import type { Plugin } from 'graphql-yoga';
import { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import type { Connections } from '../domain/connections.js';
import { DomainError, unavailable } from '../domain/errors.js';
import type { DeviceViewer } from '../model.js';
import { toRateLimited, TryLater, type Admission } from './admission.js';
import type { OperationContext } from './yoga.js';

/** The open responses, so that a drain can end them: destroyed, for a completed stream would tell its client "finished". */
export class EventStreams {
  readonly #open = new Set<ServerResponse>();
  readonly connections: Connections;
  readonly admission: Admission;
  readonly log: Logger;

  constructor({
    connections,
    admission,
    log,
  }: {
    readonly connections: Connections;
    readonly admission: Admission;
    readonly log: Logger;
  }) {
    this.connections = connections;
    this.admission = admission;
    this.log = log;
  }

  add(response: ServerResponse): void {
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
  }

  destroyAll(): void {
    for (const response of this.#open) response.destroy();
  }
}

export function useEventStreams(streams: EventStreams): Plugin<OperationContext> {
  return {
    async onSubscribe({ args, extendContext }) {
      const context = args.contextValue as OperationContext;
      const { res } = context;
      if (res === undefined || context.connection !== null) return; // a WebSocket
      requireEventStream(res);
      context.leave?.(); // a stream is no request under way: it has a door of its own
      streams.add(res);
      const { viewer } = context.auth;
      if (viewer?.kind === 'device') extendContext({ connection: await open(streams, viewer, res) });
      return {
        onSubscribeResult: ({ result }) => {
          // Nobody reads the stream of a client that left meanwhile, so nobody else would end it.
          whenClosed(res, () => void (result as Partial<AsyncGenerator>).return?.(undefined));
        },
      };
    },
  };
}

async function open({ connections, admission, log }: EventStreams, viewer: DeviceViewer, res: ServerResponse) {
  try {
    const leave = await admission.handshake('stream');
    try {
      const connection = await connections.open(viewer, () => res.destroy());
      whenClosed(res, () => {
        connections.release(connection);
      });
      return connection;
    } finally {
      leave();
    }
  } catch (error) {
    // nothing ran, and a client of event streams comes back after a 429 as after a 503 (P3)
    if (error instanceof DomainError) throw notYet(error, 429);
    if (error instanceof TryLater) throw notYet(toRateLimited(error), 503);
    log.warn({ err: error }, 'an event stream could not begin');
    throw notYet(unavailable('live hints are'), 503);
  }
}

function notYet(error: DomainError, status: number): GraphQLError {
  const seconds = Math.ceil(Number(error.facts['retryAfterMs'] ?? 1_000) / 1_000);
  const http = { status, headers: { 'retry-after': String(seconds) } };
  return new GraphQLError(error.message, { originalError: error, extensions: { http } });
}

function whenClosed(res: ServerResponse, act: () => void): void {
  if (res.closed || res.destroyed) act();
  else res.once('close', act);
}

/** Yoga would answer 406 and leave the subscription running. */
function requireEventStream(res: ServerResponse): void {
  const accept = res.req.headers.accept ?? '*/*';
  if (/text\/event-stream|text\/\*|\*\/\*/u.test(accept)) return;
  throw new GraphQLError('a subscription is answered as text/event-stream: say so in Accept, or use a WebSocket', {
    extensions: { code: 'BAD_USER_INPUT', http: { status: 406 } },
  });
}
