// Prisma's schema engine as WebAssembly, over Prisma's pg adapter: applies migrations and compares schemas without the
// native engine binary. Only migrate.ts uses it. What the adapter does wrong for the engine is put right here.
import { createRequire } from 'node:module';
import path from 'node:path';
import { readFile } from 'node:fs/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils';
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import pg from 'pg';

type EngineClass = typeof SchemaEngine;
type PgAdapter = Awaited<ReturnType<PrismaPg['connect']>>;
/** What the compiled adapter has beyond its types. */
interface AdapterInside {
  performIO(query: unknown): Promise<{ fields: { dataTypeID: number }[] }>;
  onError(error: unknown): never;
}

// Node has it, but only the browser's type library declares it.
declare const WebAssembly: {
  instantiate(code: Uint8Array, imports: object): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>;
};

const OID_CHAR = 18; // the catalogs' "char"
const OID_TEXT = 25;

let engineClass: Promise<EngineClass> | undefined;

/** Node 20 and 22 cannot import `.wasm`, so the module is put together by hand, once. */
async function loadEngineClass(): Promise<EngineClass> {
  const name = '@prisma/schema-engine-wasm/schema_engine_bg';
  const glue = (await import(name)) as Record<string, unknown> & {
    SchemaEngine: EngineClass;
    __wbg_set_wasm(exports: unknown): void;
  };
  const file = path.join(path.dirname(createRequire(import.meta.url).resolve(name)), 'schema_engine_bg.wasm');
  const imports: Record<string, unknown> = { ...glue };
  for (const key of Object.keys(imports)) {
    // The engine never clears its 10 s lock timer: without unref it would hold every process open that long.
    if (key.startsWith('__wbg_setTimeout_'))
      imports[key] = (run: () => void, ms: number) => setTimeout(run, ms).unref();
  }
  const { instance } = await WebAssembly.instantiate(await readFile(file), { './schema_engine_bg.js': imports });
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  return glue.SchemaEngine;
}

/** One statement on a connection of its own: CREATE and DROP DATABASE allow no transaction. */
async function runAlone(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

function repair(adapter: PgAdapter, afterDispose?: () => Promise<void>): SqlDriverAdapter {
  const inside = adapter as unknown as AdapterInside;
  const performIO = inside.performIO.bind(adapter);
  const queryRaw = adapter.queryRaw.bind(adapter);
  const dispose = adapter.dispose.bind(adapter);

  // The adapter splits a script at every `;`, also inside $$ … $$. One simple query is atomic and splits nothing.
  adapter.executeScript = async (script) => {
    try {
      await adapter.underlyingDriver().query(script);
    } catch (error) {
      inside.onError(error);
    }
  };
  // The adapter knows no "char" and every comparison of schemas would fail. The engine asks one query at a time.
  let charColumns: number[] = [];
  inside.performIO = async (query) => {
    const result = await performIO(query);
    charColumns = result.fields.flatMap((field, i) => (field.dataTypeID === OID_CHAR ? [i] : []));
    for (const field of result.fields) if (field.dataTypeID === OID_CHAR) field.dataTypeID = OID_TEXT;
    return result;
  };
  adapter.queryRaw = async (query) => {
    const result = await queryRaw(query);
    for (const i of charColumns) result.columnTypes[i] = ColumnTypeEnum.Character;
    return result;
  };
  adapter.dispose = async () => {
    await dispose();
    await afterDispose?.();
  };
  return adapter;
}

/** `max: 1`: the engine's advisory lock and its statements must share one session. */
const connectOnce = (url: string): Promise<PgAdapter> => new PrismaPg({ connectionString: url, max: 1 }).connect();

function adapterFactory(url: string): SqlMigrationAwareDriverAdapterFactory {
  return {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect: async () => repair(await connectOnce(url)),
    // The adapter's own drops the shadow database while its pool is still connected to it.
    connectToShadowDb: async () => {
      const database = `prisma_migrate_shadow_db_${crypto.randomUUID()}`;
      await runAlone(url, `CREATE DATABASE "${database}" TEMPLATE template0`);
      const shadow = new URL(url);
      shadow.pathname = `/${database}`;
      return repair(await connectOnce(shadow.href), () =>
        runAlone(url, `DROP DATABASE IF EXISTS "${database}" WITH (FORCE)`),
      );
    },
  };
}

/** Runs `use` with an engine on that database; every connection it made is closed at the end, whatever happens. */
export async function withSchemaEngine<T>(
  url: string,
  schema: { path: string; content: string },
  use: (engine: SchemaEngine) => Promise<T>,
): Promise<T> {
  const Engine = await (engineClass ??= loadEngineClass());
  const open: { dispose(): Promise<unknown> }[] = [];
  const factory = bindMigrationAwareSqlAdapterFactory(adapterFactory(url));
  for (const key of ['connect', 'connectToShadowDb'] as const) {
    const connect = factory[key];
    factory[key] = async () => {
      const result = await connect();
      if (result.ok) open.push(result.value);
      return result;
    };
  }
  const engine = await Engine.new({ datamodels: [[schema.path, schema.content]] }, () => undefined, factory);
  try {
    return await use(engine);
  } finally {
    engine.free();
    for (const adapter of open) await adapter.dispose();
  }
}
