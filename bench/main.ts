// `npm run bench -- NAME`: each figure against a baseline measured in the same run. --json prints one line for each NAME.
import os from 'node:os';
import { parseArgs } from 'node:util';
import type { Bench, Options, Report } from './measure.js';

const benches: Readonly<Record<string, { readonly load: () => Promise<Bench>; readonly about: string }>> = {
  unread: {
    load: async () => (await import('./unread.js')).unread,
    about: 'ms for a list of conversations with unread: ordinals, counting, rows alone',
  },
  writes: {
    load: async () => (await import('./writes.js')).writes,
    about: 'send, markRead, ack a second: the store, its function alone, the simplest statement',
  },
  api: {
    load: async () => (await import('./api.js')).api,
    about: 'requests a second over HTTP, against { __typename }',
  },
  hints: {
    load: async () => (await import('./hints.js')).hints,
    about: 'ms from publish to the last of many sockets, against a bare broadcast',
  },
  large: {
    load: async () => (await import('./large.js')).large,
    about: 'sends a second in a group of 10,000: told once, against told to each member',
  },
};

const usual = { convs: 200, messages: 1_000, members: 20, sockets: 200, crowd: 10_000, rounds: 5, turnMs: 1_000 };
const tiny = { convs: 4, messages: 30, members: 5, sockets: 3, crowd: 20, rounds: 1, turnMs: 20 };

const usage = `npm run --silent bench -- NAME… [--json] [--fsync] [--tiny] [--convs N] [--messages N] [--members N] [--sockets N]
                             [--crowd N] [--rounds N] [--turnMs N]

${Object.entries(benches)
  .map(([name, { about }]) => `  ${name.padEnd(8)} ${about}`)
  .join('\n')}

--fsync: commits wait for the disk; else they do not. --tiny: only to see that it works.`;

function print(name: string, { fsync }: Options, { rows, ratio }: Report): void {
  console.log(`${name} · ${String(os.availableParallelism())} cores · fsync ${fsync ? 'on' : 'off'}\n`);
  const width = Math.max(...rows.map((row) => row.name.length), ...Object.keys(ratio).map((key) => key.length));
  for (const row of rows) console.log(`${row.name.padEnd(width)} ${String(row.value).padStart(10)} ${row.unit}`);
  console.log('\nours / baseline');
  for (const [key, value] of Object.entries(ratio)) console.log(`${key.padEnd(width)} ${String(value).padStart(10)}`);
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...{ json: flag, fsync: flag, tiny: flag },
      ...{ convs: text, messages: text, members: text, sockets: text, crowd: text, rounds: text, turnMs: text },
    },
  });
  const named = positionals.flatMap((name) => {
    const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
    return bench ? [{ name, load: bench.load }] : [];
  });
  if (named.length < positionals.length) process.exitCode = 2;
  if (named.length === 0 || named.length < positionals.length) {
    console.log(usage);
    return;
  }
  const options = toOptions(values);
  const { startBenchServer } = await import('./postgres.js');
  await using server = await startBenchServer(options.fsync);
  for (const { name, load } of named) {
    const run = await load();
    const busy = (os.loadavg()[0] ?? 0).toFixed(1);
    console.error(`${name}: ${JSON.stringify(options)}, load ${busy} before it`);
    const { rows, ratio } = await run(options, server);
    if (values.json) console.log(JSON.stringify({ bench: name, rows, ratio }));
    else print(name, options, { rows, ratio });
  }
}

type Size = keyof typeof usual;
type Flags = { readonly [S in Size]?: string | undefined } & { readonly tiny: boolean; readonly fsync: boolean };

function toOptions(flags: Flags): Options {
  const sizes = { ...(flags.tiny ? tiny : usual) };
  for (const key of Object.keys(sizes) as Size[]) {
    const given = flags[key];
    if (given === undefined) continue;
    if (!/^[1-9]\d{0,6}$/u.test(given)) throw new Error(`--${key} is a whole number, at least 1`);
    sizes[key] = Number(given);
  }
  return { ...sizes, fsync: flags.fsync };
}

await main();
