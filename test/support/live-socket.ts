// A graphql-transport-ws client with nothing hidden: no retries, and every close code seen.
import { WebSocket, type ClientOptions } from 'ws';
import type { GraphQLAnswer } from './app.js';
import { Items } from './live-items.js';

export interface SocketOptions {
  readonly origin?: string;
  /** the payload of connection_init; null sends none */
  readonly payload?: unknown;
}
export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}
export interface LiveSubscription {
  next(withinMs?: number): Promise<GraphQLAnswer>;
  until(fits: (item: GraphQLAnswer) => boolean, withinMs?: number): Promise<GraphQLAnswer>;
  readonly all: readonly GraphQLAnswer[];
  /** Ends this subscription; its socket stays. */
  stop(): void;
}
export interface TestSocket {
  readonly ws: WebSocket;
  /** acknowledged; rejects when the socket is closed instead */
  readonly ready: Promise<void>;
  readonly closed: Promise<SocketEnd>;
  subscribe(query: string, variables?: Readonly<Record<string, unknown>>): LiveSubscription;
  send(message: unknown): void;
  close(): Promise<SocketEnd>;
}

interface Message {
  readonly id?: string;
  readonly type: string;
  readonly payload?: unknown;
}

export function connectSocket(url: string, credential: string | null, options: SocketOptions = {}): TestSocket {
  const wsOptions: ClientOptions = options.origin === undefined ? {} : { origin: options.origin };
  const ws = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws', wsOptions);
  const live = new Map<string, Items<GraphQLAnswer>>();
  const payload = options.payload ?? (credential === null ? undefined : { authorization: `Bearer ${credential}` });
  const closed = new Promise<SocketEnd>((resolve, reject) => {
    ws.on('close', (code, reason) => {
      for (const items of live.values()) items.end(new Error(`closed: ${String(code)} ${String(reason)}`));
      resolve({ code, reason: String(reason) });
    });
    ws.on('error', reject);
  });
  closed.catch(() => undefined);
  const send = (message: unknown) => {
    ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  };
  const ready = new Promise<void>((resolve, reject) => {
    closed.then(({ code, reason }) => {
      reject(new Error(`closed: ${String(code)} ${reason}`));
    }, reject);
    ws.on('open', () => {
      if (options.payload !== null) send({ type: 'connection_init', payload });
    });
    ws.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message;
      if (message.type === 'connection_ack') resolve();
      const items = live.get(message.id ?? '');
      if (message.type === 'next') items?.put(message.payload as GraphQLAnswer);
      if (message.type === 'error') items?.put({ errors: message.payload as NonNullable<GraphQLAnswer['errors']> });
      if (message.type === 'complete' || message.type === 'error') items?.end(new Error('the subscription has ended'));
    });
  });
  ready.catch(() => undefined);
  let ids = 0;
  return {
    ws,
    ready,
    closed,
    send,
    subscribe(query, variables = {}) {
      const id = `s${String(++ids)}`;
      const items = new Items<GraphQLAnswer>();
      live.set(id, items);
      send({ id, type: 'subscribe', payload: { query, variables } });
      return {
        all: items.all,
        next: (withinMs) => items.next(withinMs),
        until: (fits, withinMs) => items.until(fits, withinMs),
        stop: () => {
          send({ id, type: 'complete' });
        },
      };
    },
    close() {
      ws.close(1000);
      return closed;
    },
  };
}
