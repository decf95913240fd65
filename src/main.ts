#!/usr/bin/env node
// The process: picks a command, waits for a signal, disposes. Whatever cannot work is one plain line and exit code 1.
import { parseArgs } from 'node:util';
import { createApp } from './app.js';
import { runDevice, runMigrate, runRestored, runSeed, usage, version } from './commands.js';
import { readConfig, type Config } from './config.js';
import { createLog } from './log.js';

const out = (line: string) => process.stdout.write(`${line}\n`);
const err = (line: string) => process.stderr.write(`${line}\n`);

function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  err(message);
  process.exitCode = 1;
}

/** People read the demo's lines, machines the log: they never share a stream. */
function toTold(config: Config) {
  const isDemo = config.databaseUrl === null;
  const level = isDemo && config.logLevel === 'info' ? 'warn' : config.logLevel;
  const log = createLog({ level, to: isDemo ? 'stderr' : 'stdout' });
  const info = (line: string) => {
    log.info(line);
  };
  return { log, say: isDemo ? out : info };
}

async function serve(config: Config): Promise<true> {
  const { log, say } = toTold(config);
  let stopping: Promise<void> | null = null;
  // before the start: what is half open is closed too, the embedded Postgres last
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stop(signal);
    });
  }
  const starting = createApp(config, {
    log,
    say,
    onFatal: (message) => {
      fail(new Error(message));
      stop(message);
    },
  });
  const { url, metricsUrl } = await starting;
  log.info({ url, metricsUrl, pid: process.pid }, 'ready');
  return true;

  function stop(why: string): void {
    if (stopping) process.exit(1); // asked twice: at once
    log.info({ why }, 'stopping');
    stopping = dispose();
  }
  async function dispose(): Promise<void> {
    try {
      await (await starting)[Symbol.asyncDispose]();
    } catch (error) {
      fail(error);
    }
    process.exit();
  }
}

/** True while something goes on: `serve` ends by a signal. */
async function run(args: readonly string[]): Promise<boolean> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
      demo: { type: 'boolean' },
      user: { type: 'string' },
      device: { type: 'string' },
      name: { type: 'string' },
    },
  });
  const [command = 'serve', ...more] = positionals;
  if (values.help) out(usage);
  else if (values.version) out(await version());
  else if (more.length > 0) throw new Error(`too many arguments: ${more.join(' ')}\n\n${usage}`);
  else if (command === 'serve') return serve(readConfig());
  else await runOnce(command, values);
  return false;
}

interface Flags {
  readonly demo?: boolean;
  readonly user?: string;
  readonly device?: string;
  readonly name?: string;
}

async function runOnce(command: string, { demo, user, device, name }: Flags): Promise<void> {
  const config = readConfig();
  const told = { log: createLog({ level: 'warn', to: 'stderr' }), say: command === 'device' ? err : out };
  switch (command) {
    case 'migrate':
      return runMigrate(config, told);
    case 'seed':
      if (!demo) throw new Error('seed needs --demo: it makes the users ana, ben and cho');
      return runSeed(config, told);
    case 'device':
      if (user === undefined) throw new Error('device needs --user ID');
      out(await runDevice(config, told, { user, device, name }));
      return;
    case 'restored':
      return runRestored(config, told);
    default:
      throw new Error(`there is no command ${command}\n\n${usage}`);
  }
}

// Said and done is done: a library's timer must not keep a finished command waiting.
run(process.argv.slice(2))
  .catch((error: unknown) => {
    fail(error);
    return false;
  })
  .then((goesOn) => {
    if (!goesOn) process.exit();
  })
  .catch(fail);
