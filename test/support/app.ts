// A whole service in this process, on a free port and a database of its own, spoken to as a client does.
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { createApp, type App, type Overrides } from '../../src/app.js';
import { readConfig, type AdmissionLimits, type Config, type Rates } from '../../src/config.js';
import { connectSocket, type SocketOptions, type TestSocket } from './live-socket.js';
import { openEventStream, type EventStream } from './live-stream.js';
import { freshDatabase } from './postgres.js';

export interface StartOptions {
  readonly config?: Partial<Config>;
  readonly overrides?: Overrides;
  /** a database of the caller's, not dropped at the end; else a fresh one */
  readonly databaseUrl?: string;
}
export interface GraphQLAnswer<T = Record<string, unknown>> {
  readonly data?: T | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly path?: readonly (string | number)[];
    readonly extensions?: Readonly<Record<string, unknown>>;
  }[];
}
type Variables = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

export interface TestApp extends App {
  readonly serviceKey: string;
  readonly databaseUrl: string;
  /** @param credential of a device, or the service key; null for none */
  query<T = Record<string, unknown>>(
    credential: string | null,
    document: string,
    variables?: Variables,
    headers?: Headers,
  ): Promise<GraphQLAnswer<T>>;
  /** The same, with the status and headers of the answer. */
  post(credential: string | null, body: unknown, headers?: Headers, signal?: AbortSignal): Promise<Response>;
  /** One subscription on a socket of its own. */
  subscribe(credential: string, document: string, variables?: Variables): Promise<TestSubscription>;
  socket(credential: string | null, options?: SocketOptions): TestSocket;
  /** One subscription as server-sent events. */
  sse(credential: string | null, document: string, variables?: Variables): Promise<EventStream>;
}

export type TestSubscription = ReturnType<TestSocket['subscribe']> & { readonly socket: TestSocket };

const silent = pino({ level: process.env['TEST_LOG'] ?? 'silent' });

/** Tests send as fast as they can; those of P3 set their own. */
const often = { rate: 1_000_000, perMs: 1_000, burst: 1_000_000 };
const unlimited: Rates = { send: often, read: often, ack: often, signal: often, connect: often };

/** Nobody is turned away for the test machine's sake. */
const patient = ({ handshakes, requests }: AdmissionLimits): AdmissionLimits => ({
  handshakes: { ...handshakes, maxWaiting: 10_000, maxWaitMs: 30_000 },
  requests: { ...requests, maxWaiting: 10_000, maxWaitMs: 30_000 },
  maxLatenessMs: Infinity,
});

export function testConfig(databaseUrl: string, serviceKey: string, more: Partial<Config> = {}): Config {
  const base = readConfig({ DATABASE_URL: databaseUrl, SERVICE_KEYS: serviceKey, PORT: '0', DRAIN_MS: '2000' });
  const admission = patient(base.admission);
  // no scan comes by itself in between: tests that want one ask for it
  const redelivery = { everyMs: 3_600_000, graceMs: 0 };
  const mine = { admission, redelivery, dissolveEveryMs: 3_600_000, rates: unlimited, maxSocketsPerDevice: Infinity };
  return { ...base, poolMax: 6, ...mine, ...more };
}

export async function startApp(options: StartOptions = {}): Promise<TestApp> {
  const database = options.databaseUrl === undefined ? await freshDatabase() : null;
  const databaseUrl = options.databaseUrl ?? database?.url ?? '';
  const serviceKey = randomBytes(32).toString('base64url');
  const config = testConfig(databaseUrl, serviceKey, options.config);
  const app = await createApp(config, { log: silent, ...options.overrides }).catch(async (error: unknown) => {
    await database?.[Symbol.asyncDispose]();
    throw error;
  });
  return {
    ...clientOf(app.url),
    serviceKey,
    databaseUrl,
    url: app.url,
    port: app.port,
    deps: app.deps,
    connections: app.connections,
    redelivery: app.redelivery,
    metricsUrl: app.metricsUrl,
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]();
      await database?.[Symbol.asyncDispose]();
    },
  };
}

/** How clients speak to any Tidemark, in this process or another. */
export function clientOf(url: string): Pick<TestApp, 'query' | 'post' | 'subscribe' | 'socket' | 'sse'> {
  const graphql = `${url}/graphql`;
  const post: TestApp['post'] = (credential, body, headers = {}, signal) =>
    fetch(graphql, {
      method: 'POST',
      ...(signal && { signal }),
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const socket: TestApp['socket'] = (credential, options) => connectSocket(graphql, credential, options);
  return {
    post,
    socket,
    query: async <T>(credential: string | null, query: string, variables: Variables = {}, headers: Headers = {}) =>
      (await (await post(credential, { query, variables }, headers)).json()) as GraphQLAnswer<T>,
    subscribe: async (credential, query, variables = {}) => {
      const opened = socket(credential);
      await opened.ready;
      return Object.assign(opened.subscribe(query, variables), { socket: opened });
    },
    sse: (credential, query, variables = {}) => openEventStream(graphql, credential, { query, variables }),
  };
}
