// Several nodes as processes around a Postgres and a Redis of their own, each of which can be killed and started again.
import { randomBytes } from 'node:crypto';
import { clientOf, type TestApp } from '../support/app.js';
import { builtTidemark } from '../support/built.js';
import { readMetrics, type MetricValues } from '../support/metrics.js';
import { startTidemark, type Ended, type TidemarkProcess } from '../support/process.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { World } from '../support/world.js';
import { startRestartablePostgres, type RestartablePostgres } from './restartable-postgres.js';

type Env = Readonly<Record<string, string>>;

/** A running node. */
export interface Node {
  readonly process: TidemarkProcess;
  readonly url: string;
  readonly metricsUrl: string;
}

/** Says where to go, the next time perhaps elsewhere. */
export interface Balancer {
  urlFrom(slot: number): string;
}

/** What the tests do would be too often for people (P3). */
const manners = ['SEND', 'READ', 'ACK', 'CONNECT'].flatMap((what) => [`${what}_RATE`, `${what}_BURST`]);
const unlimited = Object.fromEntries(manners.map((name) => [name, '1000000']));

export class Cluster implements Balancer, AsyncDisposable {
  readonly postgres: RestartablePostgres;
  readonly redis: TestRedis;
  readonly serviceKey = randomBytes(32).toString('base64url');
  /** By slot; null while it is not there. */
  readonly nodes: (Node | null)[] = [];
  /** What nodes that are gone had counted. */
  readonly #counted: MetricValues[] = [];
  readonly #env: Env;

  private constructor(postgres: RestartablePostgres, redis: TestRedis, env: Env) {
    this.postgres = postgres;
    this.redis = redis;
    this.#env = env;
  }

  static async start(slots = 2, env: Env = {}): Promise<Cluster> {
    const [postgres, redis] = await Promise.all([startRestartablePostgres(), startRedis(), builtTidemark()]);
    const cluster = new Cluster(postgres, redis, env);
    try {
      await Promise.all(Array.from({ length: slots }, (_, slot) => cluster.startNode(slot)));
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  /** Outside of the slots: the caller ends it. */
  async launch(env: Env = {}): Promise<Node> {
    const all = {
      DATABASE_URL: this.postgres.url,
      REDIS_URL: this.redis.url,
      SERVICE_KEYS: this.serviceKey,
      METRICS_PORT: '0',
      DATABASE_POOL_MAX: '8',
      REDELIVERY_EVERY_MS: '1000',
      REDELIVERY_GRACE_MS: '1000',
      ...unlimited,
      ...this.#env,
      ...env,
    };
    const process = startTidemark(['serve'], all, await builtTidemark());
    const [, url = '', metricsUrl = ''] = await process.until(/"url":"([^"]+)","metricsUrl":"([^"]+)"/u);
    return { process, url, metricsUrl };
  }

  async startNode(slot: number): Promise<void> {
    this.nodes[slot] = await this.launch();
  }

  /** SIGKILL as a machine that lost its power, SIGTERM as a deployment. */
  async endNode(slot: number, signal: NodeJS.Signals): Promise<Ended> {
    const node = this.nodes[slot];
    if (!node) throw new Error(`no node in slot ${String(slot)}`);
    this.#counted.push(await readMetrics(node));
    const ended = node.process.kill(signal);
    if (signal === 'SIGKILL') this.nodes[slot] = null;
    const end = await ended;
    this.nodes[slot] = null;
    return end;
  }

  /** Of the first node from this slot on that is there; a load balancer's work. */
  urlFrom(slot: number): string {
    for (let turn = 0; turn < this.nodes.length; turn++) {
      const node = this.nodes[(slot + turn) % this.nodes.length];
      if (node) return node.url;
    }
    return 'http://127.0.0.1:9'; // nobody answers there
  }

  /** Users and devices by the service key, over the node of a slot. */
  world(slot = 0): World {
    const app: Pick<TestApp, 'query' | 'post' | 'subscribe' | 'socket' | 'sse' | 'serviceKey'> = {
      ...clientOf(this.urlFrom(slot)),
      serviceKey: this.serviceKey,
    };
    return new World(app as TestApp);
  }

  /** Sums over all nodes, those that are gone too: what they had counted when they were told to end. */
  async counted(series: string): Promise<number> {
    const living = await Promise.all(this.nodes.flatMap((node) => (node ? [readMetrics(node)] : [])));
    return [...this.#counted, ...living].reduce((sum, values) => sum + (values.get(series) ?? 0), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.flatMap((node) => (node ? [node.process.kill('SIGKILL')] : [])));
    await this.redis[Symbol.asyncDispose]();
    await this.postgres[Symbol.asyncDispose]();
  }
}
