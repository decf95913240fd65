// The commands beside `serve`: each opens the database, does one thing and closes it again.
import { readFile } from 'node:fs/promises';
import { createDeps, openDatabase, type Told } from './app.js';
import type { Config } from './config.js';
import { seedDemo } from './demo.js';
import { Disposal } from './disposal.js';
import type { Deps } from './domain/deps.js';
import { registerDevice } from './domain/devices.js';
import { upsertUser } from './domain/users.js';
import { createMemoryBus } from './hints/memory.js';
import { startEmbeddedPostgres } from './store/embedded.js';
import { migrate } from './store/migrate.js';

export const usage = `tidemark [command]

  serve                          the service itself (default)
  migrate                        brings the database's schema up to this version
  device --user ID [--device ID] [--name NAME]
                                 makes the user and a device, prints its credential
  seed --demo                    the demo's users, devices and conversations; prints the credentials
  restored                       after restoring a backup: tells clients to drop what the backup does not have
  --help, --version

Settings come from the environment; .env.example lists them.`;

export async function version(): Promise<string> {
  const { version: value } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return value;
}

export async function runMigrate({ databaseUrl, dataDir }: Config, { say }: Told): Promise<void> {
  await using owned = new Disposal();
  const url = databaseUrl ?? owned.use(await startEmbeddedPostgres({ dataDir, log: say })).url;
  const applied = await migrate(url, say);
  say(applied.length > 0 ? 'the database is up to date' : 'the database was up to date');
}

export interface NewDevice {
  readonly user: string;
  readonly device?: string | undefined;
  readonly name?: string | undefined;
}

/** Standard output gets the credential alone, so that a script can take it. */
export async function runDevice(config: Config, told: Told, { user, device, name }: NewDevice): Promise<string> {
  return withDeps(config, told, async (deps) => {
    await upsertUser(deps, { kind: 'service' }, { id: user });
    const answer = await registerDevice(deps, { kind: 'service' }, { user, deviceId: device, name });
    return answer.credential ?? '';
  });
}

export async function runSeed(config: Config, told: Told): Promise<void> {
  await withDeps(config, told, async (deps) => {
    const credentials = await seedDemo(deps);
    told.say('the demo is there; these credentials are shown once:');
    for (const [name, credential] of Object.entries(credentials)) told.say(`  ${name.padEnd(12)} ${credential}`);
  });
}

export async function runRestored(config: Config, told: Told): Promise<void> {
  // one statement that says nothing for as long as it takes
  await withDeps({ ...config, silenceMs: 0 }, told, async ({ store }) => {
    const generation = await store.transaction((tx) => tx.generation.begin(), 24 * 3_600_000);
    told.say(`generation ${generation} has begun: every log has a new epoch, no position lies above its log's end,`);
    told.say('cursors of the earlier life are answered with a reset. Running nodes notice within ten seconds and tell');
    told.say('their clients to ask again.');
  });
}

/** Hints of a command reach no other process: running nodes find out at their next check. */
async function withDeps<T>(config: Config, told: Told, work: (deps: Deps) => Promise<T>): Promise<T> {
  await using owned = new Disposal();
  const { store } = await openDatabase(config, told, owned);
  const bus = owned.use(createMemoryBus());
  return await work(createDeps({ config, store, bus, log: told.log }));
}
