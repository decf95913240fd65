// Migrations as src/store/migrate.ts applies them, on directories of the test's own.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { createMigration, drift, migrate, migrationState, MIGRATE_LOCK } from '../../src/store/migrate.js';
import { PRISMA_DIR } from '../../src/store/migration-files.js';
import { emptyDatabase, freshDatabase } from '../support/postgres.js';

const SCHEMA = `datasource db {
  provider = "postgresql"
}

model Note {
  id   Int    @id
  text String
}
`;
const CREATE_NOTE =
  'CREATE TABLE "Note" (id integer NOT NULL, text text NOT NULL, CONSTRAINT "Note_pkey" PRIMARY KEY (id));';
// Both would break if a script were cut at its semicolons.
const CREATE_FUNCTION = `CREATE FUNCTION answer() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 42; END; $$;
INSERT INTO "Note" VALUES (1, 'a;b');`;

interface PrismaDir extends AsyncDisposable {
  readonly dir: string;
  write(name: string, sql: string): Promise<void>;
}

async function prismaDir(migrations: Record<string, string>): Promise<PrismaDir> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'tidemark-prisma-'));
  const write = async (name: string, sql: string) => {
    await mkdir(path.join(dir, 'migrations', name), { recursive: true });
    await writeFile(path.join(dir, 'migrations', name, 'migration.sql'), sql);
  };
  for (const [name, sql] of Object.entries(migrations)) await write(name, sql);
  await writeFile(path.join(dir, 'schema.prisma'), SCHEMA);
  await writeFile(path.join(dir, 'migrations/migration_lock.toml'), 'provider = "postgresql"\n');
  return { dir, write, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

async function stateOf(url: string, dir: string) {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  try {
    return await migrationState(pool, dir);
  } finally {
    await pool.end();
  }
}

const nothing = { pending: [], edited: [], failed: [], unknown: [] };
const ignore = () => undefined;

describe('migrate', () => {
  it('applies each migration once, whole and in order, and says so', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '2_function': CREATE_FUNCTION, '1_note': CREATE_NOTE });
    const lines: string[] = [];
    expect(await stateOf(db.url, prisma.dir)).toEqual({ ...nothing, pending: ['1_note', '2_function'] });
    expect(await migrate(db.url, (line) => lines.push(line), prisma.dir)).toEqual(['1_note', '2_function']);
    expect(lines).toEqual(['applied migration 1_note', 'applied migration 2_function']);
    expect(await query(db.url, 'SELECT answer(), text FROM "Note"')).toEqual([{ answer: 42, text: 'a;b' }]);
    expect(await stateOf(db.url, prisma.dir)).toEqual(nothing);
    expect(await migrate(db.url, ignore, prisma.dir)).toEqual([]);
  });

  it('applies each migration once when four processes start together', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE, '2_function': CREATE_FUNCTION });
    const started = await Promise.all([1, 2, 3, 4].map(() => migrate(db.url, ignore, prisma.dir)));
    expect(started.filter((names) => names.length > 0)).toEqual([['1_note', '2_function']]);
    expect(await query(db.url, 'SELECT count(*)::int AS n FROM _prisma_migrations')).toEqual([{ n: 2 }]);
  });

  it('waits for another process that migrates, without limit and without holding a snapshot', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE });
    const other = new pg.Client({ connectionString: db.url });
    await other.connect();
    await other.query('SELECT pg_advisory_lock($1)', [MIGRATE_LOCK]);
    const applied = migrate(db.url, ignore, prisma.dir);
    // A waiting statement would hold up CREATE INDEX CONCURRENTLY in the other's migration, for ever.
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE '/* migrate.lock */%' AND state = 'idle'`;
    await expect.poll(async () => (await other.query(waiting)).rowCount, { timeout: 20_000 }).toBe(1);
    expect(await stateOf(db.url, prisma.dir)).toEqual({ ...nothing, pending: ['1_note'] });
    await other.end();
    expect(await applied).toEqual(['1_note']);
  });

  it('names the migration that failed in one line, and refuses to go on afterwards', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE, '2_bad': 'SELECT 1/0;', '3_later': CREATE_FUNCTION });
    const attempt = () => migrate(db.url, ignore, prisma.dir);
    await expect(attempt()).rejects.toThrow(/^migration 2_bad failed: division by zero$/);
    expect(await stateOf(db.url, prisma.dir)).toEqual({ ...nothing, pending: ['3_later'], failed: ['2_bad'] });
    await expect(attempt()).rejects.toThrow(/^migration 2_bad failed half-way earlier \(P3009\): .*$/);
  });

  it('refuses a migration that was edited after it was applied', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE });
    await migrate(db.url, ignore, prisma.dir);
    await prisma.write('1_note', `${CREATE_NOTE} -- harmless?`);
    expect(await stateOf(db.url, prisma.dir)).toEqual({ ...nothing, edited: ['1_note'] });
    await expect(migrate(db.url, ignore, prisma.dir)).rejects.toThrow(/^migration 1_note was changed after/);
  });

  it('lets an older version run on a newer database, and mentions it', async () => {
    await using db = await emptyDatabase();
    await using newer = await prismaDir({ '1_note': CREATE_NOTE, '2_function': CREATE_FUNCTION });
    await using older = await prismaDir({ '1_note': CREATE_NOTE });
    await migrate(db.url, ignore, newer.dir);
    const lines: string[] = [];
    expect(await migrate(db.url, (line) => lines.push(line), older.dir)).toEqual([]);
    expect(lines).toEqual(['the database is newer than this version: it has 2_function']);
    expect(await stateOf(db.url, older.dir)).toEqual({ ...nothing, unknown: ['2_function'] });
  });

  it('says in one line that the database cannot be reached, without its password', async () => {
    const error = await migrate('postgresql://ana:secret@127.0.0.1:1/none').catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/^Error: cannot connect to Postgres on 127\.0\.0\.1:1: .*ECONNREFUSED.*$/);
    expect(String(error)).not.toContain('secret');
  });

  it('lets the process end at once', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE });
    const code = `import { migrate } from './src/store/migrate.ts';
      await migrate('${db.url}', console.log, '${prisma.dir}'); process.once('exit', () => console.log(performance.now() < 8000));`;
    const args = ['--import', 'tsx', '--input-type=module', '-e', code];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toBe('applied migration 1_note\ntrue\n');
  });
});

describe('drift', () => {
  it('is null when the migrations make what schema.prisma says', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE, '2_function': CREATE_FUNCTION });
    expect(await drift(db.url, prisma.dir)).toBeNull();
  });

  it('gives the SQL for a column that no migration adds, and createMigration writes it', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_note': CREATE_NOTE });
    const wider = SCHEMA.replace('text String', 'text String\n  seenAt DateTime?');
    await writeFile(path.join(prisma.dir, 'schema.prisma'), wider);
    expect(await drift(db.url, prisma.dir)).toMatch(/ALTER TABLE "Note" ADD COLUMN\s+"seenAt"/);

    const made = await createMigration(db.url, 'Seen at', prisma.dir);
    expect(path.basename(made ?? '')).toMatch(/^\d{14}_seen_at$/);
    expect(await readFile(path.join(made ?? '', 'migration.sql'), 'utf8')).toContain('"seenAt"');
    expect(await drift(db.url, prisma.dir)).toBeNull();
    expect(await createMigration(db.url, 'Nothing', prisma.dir)).toBeNull();
    expect(await query(db.url, "SELECT datname FROM pg_database WHERE datname LIKE 'prisma_migrate_shadow%'")).toEqual(
      [],
    );
  });

  it('fails when a migration cannot be replayed', async () => {
    await using db = await emptyDatabase();
    await using prisma = await prismaDir({ '1_bad': 'SELECT 1/0;' });
    await expect(drift(db.url, prisma.dir)).rejects.toThrow(/1_bad.*division by zero/);
  });
});

describe('the project’s own migrations', () => {
  it('are all applied in a fresh test database and agree with schema.prisma', async () => {
    await using db = await freshDatabase();
    expect(await stateOf(db.url, PRISMA_DIR)).toEqual(nothing);
    expect(await drift(db.url)).toBeNull();
  });

  it('leave two fresh test databases independent', async () => {
    await using one = await freshDatabase();
    await using two = await freshDatabase();
    await query(one.url, 'CREATE TABLE only_here ()');
    expect(await query(two.url, "SELECT to_regclass('only_here') AS found")).toEqual([{ found: null }]);
    expect((await readdir(path.join(PRISMA_DIR, 'migrations'))).length).toBeGreaterThan(0);
  });
});
