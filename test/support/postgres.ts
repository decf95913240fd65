// The Postgres of the tests: a database per call, cloned from a template that was migrated once for this run. The server
// is TEST_DATABASE_URL, else our own embedded one in a temporary directory; never whatever else runs on the machine.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { startEmbeddedPostgres } from '../../src/store/embedded.js';
import { migrate } from '../../src/store/migrate.js';
import { leash } from './leash.js';

export interface TestPostgres {
  /** Of a database whose user may create others. */
  adminUrl: string;
  template: string;
  /** How CREATE DATABASE copies. */
  strategy: string;
}

export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: TestPostgres;
  }
}

const newName = (kind: string) => `tidemark_${kind}_${randomUUID().replaceAll('-', '').slice(0, 12)}`;

function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}

async function run(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function create(server: string, template: string, strategy = ''): Promise<TestDatabase> {
  const name = newName('test');
  await run(server, `CREATE DATABASE ${name} TEMPLATE ${template} ${strategy}`);
  return {
    url: withDatabase(server, name),
    [Symbol.asyncDispose]: () => run(server, `DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** `await using db = await freshDatabase()`: migrated, empty, and gone afterwards. */
export function freshDatabase(): Promise<TestDatabase> {
  const { adminUrl, template, strategy } = inject('postgres');
  return create(adminUrl, template, strategy);
}

/** Without our tables: for tests of migrations themselves. */
export function emptyDatabase(): Promise<TestDatabase> {
  return create(inject('postgres').adminUrl, 'template0');
}

/** A server of our own, without regard for a power cut, that ends with this process at the latest. */
export async function startThrowawayPostgres(): Promise<TestDatabase> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tidemark-test-'));
  // Before the start, which may be interrupted too.
  const guard = leash('kill -s INT "$(head -n 1 "$1/cluster/data/postmaster.pid")"; sleep 2; rm -rf "$1"', dataDir);
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '200' };
  const server = await startEmbeddedPostgres({ dataDir, settings });
  return {
    url: server.url,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
      guard[Symbol.dispose]();
    },
  };
}

/** For the global setup: the server and the migrated template. */
export async function startTestPostgres(): Promise<TestPostgres & AsyncDisposable> {
  const given = process.env['TEST_DATABASE_URL'];
  const server = given ? undefined : await startThrowawayPostgres();
  const adminUrl = given ?? server?.url ?? '';
  const template = newName('template');
  await run(adminUrl, `CREATE DATABASE ${template} TEMPLATE template0`);
  await migrate(withDatabase(adminUrl, template));
  return {
    adminUrl,
    template,
    // Copying files means a checkpoint: quick only where nothing is synced, then 25 ms instead of 100.
    strategy: given ? '' : 'STRATEGY FILE_COPY',
    [Symbol.asyncDispose]: async () => {
      if (given) await run(given, `DROP DATABASE ${template} WITH (FORCE)`);
      await server?.[Symbol.asyncDispose]();
    },
  };
}
