// The HTTP server: GraphQL, GraphiQL, health, and a shutdown that loses nothing that has begun.
import { randomUUID } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Readiness } from '../domain/health.js';
import { logRequest } from './access-log.js';
import { answerTryLater, TryLater, type Admission, type Leave } from './admission.js';
import type { EventStreams } from './event-streams.js';
import { scriptPath, type GraphiQL } from './graphiql.js';
import { listenOn, portOf, urlOf } from './listening.js';
import { newNotes, type Notes } from './operations.js';
import { answerCors, type OriginRule } from './origins.js';
import type { WebSockets } from './websocket.js';
import type { GraphQLEngine } from './yoga.js';

const paths: ReadonlySet<string> = new Set(['/graphql', '/healthz', '/readyz', scriptPath]);

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly drainMs: number;
  readonly engine: GraphQLEngine;
  readonly streams: EventStreams;
  readonly admission: Admission;
  readonly attachSockets: (server: http.Server) => WebSockets;
  readonly graphiql: GraphiQL | null;
  readonly isAllowed: OriginRule;
  readonly readiness: () => Promise<Readiness>;
  readonly log: Logger;
}
export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

/** @throws one plain line when the port is taken */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const server = new HttpServer(options);
  await server.listen();
  return server;
}

class HttpServer implements RunningServer {
  readonly #options: ServerOptions;
  readonly #http: http.Server;
  readonly #sockets: WebSockets;
  readonly #running = new Set<ServerResponse>();
  #draining = false;
  #drained: Promise<void> | null = null;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#http = http.createServer({ requestTimeout: 30_000, headersTimeout: 15_000 }, (req, res) => {
      this.#answer(req, res).catch((error: unknown) => {
        options.log.error({ err: error }, 'a request failed outside of GraphQL');
        if (!res.headersSent) sendJson(res, 500, { error: 'internal server error' });
        else res.destroy();
      });
    });
    this.#sockets = options.attachSockets(this.#http);
  }

  get port(): number {
    return portOf(this.#http);
  }

  get url(): string {
    return urlOf(this.#http, this.#options.host);
  }

  async listen(): Promise<void> {
    const { host, port } = this.#options;
    await listenOn(this.#http, { host, port, variable: 'PORT' });
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const requestId = idOf(req);
    const { path, query } = routeOf(req);
    const notes = newNotes();
    res.setHeader('x-request-id', requestId);
    logRequest(this.#options.log, req, res, { requestId, path: paths.has(path) ? path : null, notes });
    if (this.#draining) {
      res.setHeader('connection', 'close');
      res.setHeader('retry-after', '1');
      sendJson(res, 503, { error: 'this server is shutting down' });
      return;
    }
    this.#running.add(res);
    res.once('close', () => this.#running.delete(res));
    if (path === '/graphql') await this.#graphql(req, res, { requestId, notes, query });
    else if (path === '/healthz') sendJson(res, 200, { status: 'up' });
    else if (path === '/readyz') await this.#ready(res);
    else if (path === scriptPath && this.#options.graphiql) await this.#options.graphiql.script(res);
    else sendJson(res, 404, { error: 'nothing here: the API is at /graphql' });
  }

  async #graphql(
    req: IncomingMessage,
    res: ServerResponse,
    { query, ...told }: { requestId: string; notes: Notes; query: string },
  ) {
    const { graphiql, isAllowed, engine } = this.#options;
    if (graphiql && req.method === 'GET' && req.headers.accept?.includes('text/html')) {
      await graphiql.page(req, res, new URLSearchParams(query)); // before CORS: no other page may read it
      return;
    }
    if (answerCors(isAllowed, req, res)) return;
    const leave = await this.#admit(res);
    if (leave === null) return;
    res.once('close', leave);
    // Yoga makes a URL of these and would answer a malformed one with a stack trace
    req.url = `/graphql${query}`;
    req.headers.host = 'tidemark';
    await engine.handle(req, res, { ...told, leave });
  }

  /** Null: answered already, or nobody waits for an answer any more. */
  async #admit(res: ServerResponse): Promise<Leave | null> {
    try {
      const leave = await this.#options.admission.request();
      if (!res.closed) return leave;
      leave();
    } catch (error) {
      if (!(error instanceof TryLater)) throw error;
      answerTryLater(res, error);
    }
    return null;
  }

  async #ready(res: ServerResponse): Promise<void> {
    const { problems, hints } = await this.#options.readiness();
    const isReady = problems.length === 0;
    sendJson(res, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', hints, problems });
  }

  /** In this order: nobody new, the waiting told to go elsewhere, the running finished, whoever is left cut off. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#drained ??= this.#drain();
    return this.#drained;
  }

  async #drain(): Promise<void> {
    const { drainMs, streams } = this.#options;
    const closed = new Promise((resolve) => this.#http.close(resolve));
    this.#draining = true;
    streams.destroyAll();
    const cut = setTimeout(() => {
      this.#http.closeAllConnections();
    }, drainMs);
    await Promise.all([this.#sockets.close(Math.min(drainMs, 1_000)), this.#finishRunning()]);
    this.#http.closeIdleConnections();
    // kept open by a client that asks nothing more
    setTimeout(() => {
      this.#http.closeAllConnections();
    }, 100).unref();
    await closed;
    clearTimeout(cut);
  }

  async #finishRunning(): Promise<void> {
    await Promise.all([...this.#running].map((res) => new Promise((resolve) => res.once('close', resolve))));
  }
}

function routeOf(req: IncomingMessage): { path: string; query: string } {
  const [path = '', ...rest] = (req.url ?? '').split('?');
  return { path, query: rest.length > 0 ? `?${rest.join('?')}` : '' };
}

/** The client's own, if it is harmless in a log: no credential, say. */
function idOf(req: IncomingMessage): string {
  const given = req.headers['x-request-id'];
  return typeof given === 'string' && /^(?!tm_)[\w.-]{1,64}$/u.test(given) ? given : randomUUID();
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  res.end(`${JSON.stringify(body)}\n`);
}
