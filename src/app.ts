// The composition root: builds everything in order and disposes in reverse. The only file that may import every folder.
import type { Server } from 'node:http';
import type { Logger } from 'pino';
import type { Config } from './config.js';
import { prepareDemo } from './demo.js';
import { Disposal } from './disposal.js';
import { BadgeFeeds } from './domain/badge-feed.js';
import { createPace } from './domain/commit.js';
import { Connections } from './domain/connections.js';
import type { Deps, Failpoint } from './domain/deps.js';
import { problemsOf, readiness } from './domain/health.js';
import { createDissolving } from './domain/dissolving.js';
import { createLoads } from './domain/loads.js';
import { PullChannels } from './domain/pull-channels.js';
import { createRateLimits } from './domain/rate-limits.js';
import { Redelivery } from './domain/redelivery.js';
import type { HintBus } from './hints/bus.js';
import { createMemoryBus } from './hints/memory.js';
import { createRedisBus } from './hints/redis.js';
import { createLog } from './log.js';
import { startEmbeddedPostgres } from './store/embedded.js';
import { takeLease } from './store/lease.js';
import { migrate, migrationState } from './store/migrate.js';
import { createStore, type Store } from './store/store.js';
import { Admission } from './transport/admission.js';
import { createAuthenticator } from './transport/auth.js';
import { createErrorGate } from './transport/errors.js';
import { EventStreams } from './transport/event-streams.js';
import { createGraphiQL, type DemoCredentials } from './transport/graphiql.js';
import { createMetrics, serveMetrics } from './transport/metrics.js';
import { createOriginRule } from './transport/origins.js';
import { startServer, type RunningServer } from './transport/server.js';
import { attachWebSockets } from './transport/websocket.js';
import { createEngine } from './transport/yoga.js';

export interface Overrides {
  readonly log?: Logger;
  /** lines for people: progress, and the demo's addresses */
  readonly say?: (line: string) => void;
  readonly bus?: HintBus;
  readonly failpoint?: Failpoint;
  /** how often the connected devices are checked (I4) */
  readonly checkEveryMs?: number;
  /** this process may not go on */
  readonly onFatal?: (message: string) => void;
}

export interface App extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly deps: Deps;
  readonly connections: Connections;
  readonly redelivery: Redelivery;
  /** null when they are not served */
  readonly metricsUrl: string | null;
}

const leaseTaken = 'another Tidemark runs on this database; two nodes need REDIS_URL';

/** @throws Error with one plain line when something that it needs is not there */
export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const owned = new Disposal();
  try {
    return await build(config, overrides, owned);
  } catch (error) {
    await owned[Symbol.asyncDispose]();
    throw error;
  }
}

async function build(config: Config, overrides: Overrides, owned: Disposal): Promise<App> {
  const log = overrides.log ?? createLog({ level: config.logLevel });
  const say = overrides.say ?? (() => undefined);
  const { store, url, demoDir } = await openDatabase(config, { log, say }, owned);
  await requireLease(config, url, { log, onFatal: overrides.onFatal }, owned);
  const metrics = createMetrics();
  const bus = owned.use(overrides.bus ?? createBus(config, { log, metrics }));
  bus.enter(await store.generation.current());
  metrics.watch(store.pool, bus);
  const { checkEveryMs, failpoint = toFailpoint(config.failpoint) } = overrides;
  const deps = createDeps({ config, store, bus, log, metrics, failpoint });
  for (const own of [deps.channels, deps.pace]) owned.use(own);
  const { maxSocketsPerDevice: maxPerDevice } = config;
  const shared = { store, bus, rates: deps.rates, log, metrics };
  const connections = owned.use(new Connections({ ...shared, checkEveryMs, maxPerDevice }));
  const redelivery = owned.use(new Redelivery(deps, connections, config.redelivery));
  owned.use(createDissolving(deps, config.dissolveEveryMs));
  const demo = demoDir === null ? null : await prepareDemo(deps, demoDir);
  const served = owned.use(await serveMetrics(config, deps));
  const admission = owned.use(new Admission(config.admission, metrics));
  const server = owned.use(await serve(config, deps, { connections, admission, demo }));
  if (demo) for (const line of demo.describe(server.url, isLoopback(config.host))) say(line);
  return {
    url: server.url,
    port: server.port,
    deps,
    connections,
    redelivery,
    metricsUrl: served?.url ?? null,
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

export interface Told {
  readonly log: Logger;
  readonly say: (line: string) => void;
}
export interface OpenDatabase {
  readonly url: string;
  readonly store: Store;
  /** where the demo's credentials lie; null without a demo */
  readonly demoDir: string | null;
}

/** The database of DATABASE_URL as it is, or one of our own, migrated. */
export async function openDatabase(config: Config, { log, say }: Told, owned: Disposal): Promise<OpenDatabase> {
  const { databaseUrl, dataDir, poolMax, silenceMs } = config;
  const embedded = databaseUrl === null ? owned.use(await startEmbeddedPostgres({ dataDir, log: say })) : null;
  const url = databaseUrl ?? embedded?.url ?? '';
  if (embedded) await migrate(url, say);
  const onError = (error: Error) => {
    log.warn({ err: error }, 'an idle database connection broke');
  };
  const store = owned.use(createStore({ url, poolMax, silenceMs, onError }));
  await requireMigrated(store, url, log);
  return { url, store, demoDir: embedded?.dataDir ?? null };
}

async function requireMigrated(store: Store, url: string, log: Logger): Promise<void> {
  const state = await migrationState(store.pool).catch((error: unknown) => {
    const { hostname, port } = new URL(url);
    const { message, code } = error as Error & { code?: string };
    throw new Error(`cannot reach Postgres on ${hostname}:${port || '5432'}: ${message || String(code)}`, {
      cause: error,
    });
  });
  const [problem] = problemsOf(state);
  if (problem !== undefined) throw new Error(problem);
  if (state.unknown.length > 0) log.warn({ migrations: state.unknown }, 'the database is newer than this version');
}

/** H6: alone without Redis. */
async function requireLease(
  config: Config,
  url: string,
  { log, onFatal }: { readonly log: Logger; readonly onFatal: Overrides['onFatal'] },
  owned: Disposal,
): Promise<void> {
  const lease = await takeLease({
    url,
    shared: config.redisUrl !== null,
    onLost: () => onFatal?.(leaseTaken),
    onError: (error) => {
      log.warn({ err: error }, 'the connection that holds the lease broke; taking it again');
    },
  });
  if (lease === null) throw new Error(leaseTaken);
  owned.use(lease);
}

function createBus({ redisUrl: url, redisPrefix: prefix }: Config, told: Pick<Deps, 'log' | 'metrics'>): HintBus {
  return url === null ? createMemoryBus(told.log) : createRedisBus({ url, prefix, ...told });
}

export function createDeps({
  config,
  store,
  bus,
  log,
  metrics = createMetrics(),
  failpoint = toFailpoint(null),
}: Pick<Deps, 'store' | 'bus' | 'log'> &
  Partial<Pick<Deps, 'metrics' | 'failpoint'>> & { readonly config: Config }): Deps {
  const { limits, delivery } = config;
  const channels = new PullChannels({ store, bus, log, metrics, lookEveryMs: delivery.bothMs / 3 });
  const badges = new BadgeFeeds({ channels, load: (user) => store.unread.badge(user), log, metrics });
  const pace = createPace(bus, delivery.everyMs, metrics);
  const [rates, loads] = [createRateLimits(config.rates), createLoads(store)];
  return { store, bus, channels, pace, delivery, loads, badges, limits, rates, log, metrics, failpoint };
}

/** TIDEMARK_FAILPOINT: the process dies there, as if its machine had. */
function toFailpoint(at: string | null): Failpoint {
  return (name) => {
    if (name === at) process.kill(process.pid, 'SIGKILL');
    return Promise.resolve();
  };
}

function serve(
  config: Config,
  deps: Deps,
  {
    connections,
    admission,
    demo,
  }: { readonly connections: Connections; readonly admission: Admission; readonly demo: DemoCredentials | null },
): Promise<RunningServer> {
  const { log, metrics } = deps;
  const gate = createErrorGate(log, metrics);
  const authenticator = createAuthenticator(deps, config.serviceKeys);
  const streams = new EventStreams({ connections, admission, log });
  const engine = createEngine({ deps, authenticator, gate, streams, production: config.production, log });
  const isAllowed = createOriginRule(config.allowedOrigins, demo !== null);
  return startServer({
    host: config.host,
    port: config.port,
    drainMs: config.drainMs,
    engine,
    streams,
    admission,
    attachSockets: (server: Server) =>
      attachWebSockets(server, {
        ...{ engine, authenticator, admission, connections, gate, isAllowed, log, metrics },
        queries: config.wsQueries,
      }),
    // a credential in the page only where nobody else can ask for the page
    graphiql: config.graphiql ? createGraphiQL(isLoopback(config.host) ? demo : null) : null,
    isAllowed,
    readiness: () => readiness(deps),
    log,
  });
}

const isLoopback = (host: string) => ['127.0.0.1', 'localhost', '::1'].includes(host);
