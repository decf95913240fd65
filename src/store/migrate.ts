// Owns the database's schema: applies prisma/migrations in order, each once, however many processes start at a time,
// and says how database, migrations and prisma/schema.prisma differ. The table `_prisma_migrations` is Prisma's own format.
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { PRISMA_DIR, readMigrations, readSchema, toMigrationList } from './migration-files.js';
import { withSchemaEngine } from './schema-engine.js';

const NO_FILTER = { externalTables: [], externalEnums: [] };
/** Advisory lock of our own: the engine's gives up after 10 s, and a migration may take longer than that. */
export const MIGRATE_LOCK = 7_236_970_001;

/** Anything with pg's `query`: a pool or a client. */
export interface Queryable {
  query(sql: string): Promise<{ rows: unknown[] }>;
}

/** Names of migrations, each list in order. All empty: the database is as this version wants it. */
export interface MigrationState {
  /** Not applied yet. */
  pending: string[];
  /** Applied, but the file has changed since. */
  edited: string[];
  /** Begun and not finished: broken half-way, or still running. */
  failed: string[];
  /** Applied, but this version has no such file: the database is newer than the program. */
  unknown: string[];
}

interface AppliedRow {
  migration_name: string;
  checksum: string;
  finished: boolean;
}

async function readApplied(db: Queryable): Promise<AppliedRow[]> {
  const { rows: found } = await db.query(
    "/* migrate.table */ SELECT 1 WHERE to_regclass('_prisma_migrations') IS NOT NULL",
  );
  if (found.length === 0) return [];
  const { rows } = await db.query(
    `/* migrate.state */ SELECT migration_name, checksum, finished_at IS NOT NULL AS finished
     FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY migration_name`,
  );
  return rows as AppliedRow[];
}

/** Two small statements and the files; cheap enough for a readiness probe. */
export async function migrationState(db: Queryable, prismaDir = PRISMA_DIR): Promise<MigrationState> {
  const [local, rows] = await Promise.all([readMigrations(prismaDir), readApplied(db)]);
  const applied = new Map(rows.filter((row) => row.finished).map((row) => [row.migration_name, row.checksum]));
  const failed = rows.map((row) => row.migration_name).filter((name) => !applied.has(name));
  const checksum = (sql: string) => createHash('sha256').update(sql).digest('hex');
  const names = local.map((migration) => migration.name);
  return {
    pending: names.filter((name) => !applied.has(name) && !failed.includes(name)),
    edited: local.flatMap(({ name, sql }) => (applied.has(name) && applied.get(name) !== checksum(sql) ? [name] : [])),
    failed,
    unknown: [...applied.keys()].filter((name) => !names.includes(name)),
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    return client;
  } catch (error) {
    // `localhost` with two addresses gives an AggregateError without a message.
    const { message, code } = error as Error & { code?: string };
    throw new Error(`cannot connect to Postgres on ${client.host}:${String(client.port)}: ${message || String(code)}`, {
      cause: error,
    });
  }
}

/** A session lock that every `migrate` takes. Polled: a session that waits inside a statement would hold back
 *  CREATE INDEX CONCURRENTLY in a migration, and both would wait for ever. */
async function lock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>(
      `/* migrate.lock */ SELECT pg_try_advisory_lock(${String(MIGRATE_LOCK)}) AS locked`,
    );
    if (rows[0]?.locked) return;
    await pause(100);
  }
}

function requireSound(state: MigrationState): void {
  if (state.failed.length > 0) {
    throw new Error(
      `migration ${state.failed.join(', ')} failed half-way earlier (P3009): repair the database, then delete its row in _prisma_migrations`,
    );
  }
  if (state.edited.length > 0) {
    throw new Error(`migration ${state.edited.join(', ')} was changed after it was applied: restore its file`);
  }
}

/** Applies what is pending and gives the names applied. When nothing is, two quick statements and no engine. */
export async function migrate(
  url: string,
  log: (line: string) => void = () => undefined,
  prismaDir = PRISMA_DIR,
): Promise<string[]> {
  const client = await connect(url);
  try {
    let state = await migrationState(client, prismaDir);
    if (state.pending.length > 0 || state.failed.length > 0) {
      // Another process may be at it: what looks failed may be running, what is pending may soon be done.
      await lock(client);
      state = await migrationState(client, prismaDir);
    }
    requireSound(state);
    if (state.unknown.length > 0) log(`the database is newer than this version: it has ${state.unknown.join(', ')}`);
    if (state.pending.length === 0) return [];
    const applied = await applyMigrations(url, prismaDir);
    // The engine is trusted to run the files, not to say so.
    const after = await migrationState(client, prismaDir);
    const left = [...after.pending, ...after.failed];
    if (left.length > 0) throw new Error(`migrations not applied: ${left.join(', ')}`);
    for (const name of applied) log(`applied migration ${name}`);
    return applied;
  } finally {
    await client.end();
  }
}

async function applyMigrations(url: string, prismaDir: string): Promise<string[]> {
  const [schema, migrationsList] = await Promise.all([readSchema(prismaDir), toMigrationList(prismaDir)]);
  const { appliedMigrationNames } = await withSchemaEngine(url, schema, (engine) =>
    engine.applyMigrations({ migrationsList, filters: NO_FILTER }),
  ).catch(rethrowPlain);
  return appliedMigrationNames;
}

/** The SQL that the migrations lack compared with schema.prisma; null when they agree. Needs the right to create a
 *  database (the migrations are replayed in a temporary one); reads and writes nothing in `url` itself. */
export async function drift(url: string, prismaDir = PRISMA_DIR): Promise<string | null> {
  const [schema, migrations] = await Promise.all([readSchema(prismaDir), toMigrationList(prismaDir)]);
  const { exitCode, stdout } = await withSchemaEngine(url, schema, (engine) =>
    engine.diff({
      from: { tag: 'migrations', ...migrations },
      to: { tag: 'schemaDatamodel', files: [schema] },
      script: true,
      exitCode: true,
      filters: NO_FILTER,
    }),
  ).catch(rethrowPlain);
  if (exitCode === 0) return null;
  if (exitCode === 2 && stdout) return stdout;
  throw new Error(`comparing migrations with schema.prisma failed (${String(exitCode)})`);
}

/** Writes the next migration's directory and gives its path; null when there is nothing to write. */
export async function createMigration(url: string, name: string, prismaDir = PRISMA_DIR): Promise<string | null> {
  const sql = await drift(url, prismaDir);
  if (sql === null) return null;
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const dir = path.join(prismaDir, 'migrations', `${stamp}_${name.toLowerCase().replace(/[^a-z0-9]+/g, '_')}`);
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, 'migration.sql'), sql);
  return dir;
}

/** The engine's errors are reports of many lines; ours are one. */
function rethrowPlain(error: unknown): never {
  const report = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  const migration = /migration_name="([^"]+)"/.exec(report)?.[1];
  const what = (report.split(/\n\s+0: /)[0] ?? report)
    .split('\n')
    .map((line) => line.replace('Error querying the database: ERROR: ', '').trim())
    .filter((line) => line !== '' && line !== 'Error:' && line !== 'external connector error')
    .join(' ');
  throw new Error(`${migration ? `migration ${migration} failed: ` : ''}${what}${code}`, { cause: error });
}
