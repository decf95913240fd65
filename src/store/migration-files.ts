// The migrations and the schema as they lie in prisma/, read for the database and for the schema engine.
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MigrationList } from '@prisma/schema-engine-wasm';

/** The same place seen from src/store, from dist/store and from an installed package. */
export const PRISMA_DIR = fileURLToPath(new URL('../../prisma', import.meta.url));

const LOCK_FILE = 'migration_lock.toml';
export interface Migration {
  name: string;
  sql: string;
}

export async function readMigrations(prismaDir: string): Promise<Migration[]> {
  const entries = await readdir(path.join(prismaDir, 'migrations'), { withFileTypes: true });
  const names = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
  const file = (name: string) => path.join(prismaDir, 'migrations', name, 'migration.sql');
  return Promise.all(names.map(async (name) => ({ name, sql: await readFile(file(name), 'utf8') })));
}

export async function readSchema(prismaDir: string): Promise<{ path: string; content: string }> {
  const file = path.join(prismaDir, 'schema.prisma');
  return { path: file, content: await readFile(file, 'utf8') };
}

export async function toMigrationList(prismaDir: string): Promise<MigrationList> {
  const baseDir = path.join(prismaDir, 'migrations');
  const migrations = await readMigrations(prismaDir);
  return {
    baseDir,
    lockfile: { path: LOCK_FILE, content: await readFile(path.join(baseDir, LOCK_FILE), 'utf8') },
    shadowDbInitScript: '',
    migrationDirectories: migrations.map(({ name, sql }) => ({
      path: name,
      migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
    })),
  };
}
