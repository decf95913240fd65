// `npm run soak -- --minutes 3 --json out.json --seed 7`: mixed load on two nodes while random things break, one after the
// other. Now and then all rests, and everything must be as it was promised. Exits 1 when something is not.
import { writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newSeed, seeded, type Seeded } from '../support/seeded.js';
import { Cluster } from './cluster.js';
import { figuresOf, tableOf, type Survived } from './report.js';
import { judge } from './verdict.js';
import { populate, startLoad, type FaultWorld } from './world.js';

type Fault = (cluster: Cluster, random: Seeded) => Promise<void>;

const faults: Readonly<Record<string, Fault>> = {
  'kill -9 of a node': async (cluster, random) => {
    const slot = random.below(2);
    await cluster.endNode(slot, 'SIGKILL');
    await pause(random.below(3_000));
    await cluster.startNode(slot);
  },
  'SIGTERM of a node': async (cluster, random) => {
    const slot = random.below(2);
    await cluster.endNode(slot, 'SIGTERM');
    await cluster.startNode(slot);
  },
  'kill -9 of Redis': async (cluster, random) => {
    await cluster.redis.kill('SIGKILL');
    await pause(random.below(6_000));
    await cluster.redis.restart();
  },
  'SIGSTOP of Redis': async (cluster, random) => {
    await cluster.redis.kill('SIGSTOP');
    await pause(1_000 + random.below(7_000));
    await cluster.redis.kill('SIGCONT');
  },
  FLUSHALL: (cluster) => cluster.redis.flush(),
  'crash of Postgres': async (cluster, random) => {
    await cluster.postgres.stop('immediate');
    await pause(random.below(2_000));
    await cluster.postgres.start();
  },
  'restart of Postgres': async (cluster) => {
    await cluster.postgres.stop('fast');
    await cluster.postgres.start();
  },
};

/** A few things break under one load; then it rests and is judged. */
async function round(
  world: FaultWorld,
  random: Seeded,
): Promise<Survived & { readonly violations: readonly string[] }> {
  const load = startLoad(world, random);
  const broken: string[] = [];
  for (let turn = 0; turn <= random.below(3); turn++) {
    const name = random.pick(Object.keys(faults));
    broken.push(name);
    await pause(random.below(2_000));
    await faults[name]?.(world.cluster, random);
  }
  await pause(1_000);
  await load.stop();
  return { fault: broken.join(', '), ...(await judge(world)) };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '3' },
      json: { type: 'string' },
      seed: { type: 'string', default: String(newSeed()) },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0) || !Number.isSafeInteger(seed)) throw new Error('--minutes is above 0, --seed a whole number');
  console.log(`seed ${String(seed)}`);
  const random = seeded(seed);
  await using cluster = await Cluster.start();
  await using world = await populate(cluster);
  const survived: Survived[] = [];
  const violations: string[] = [];
  const endAt = performance.now() + minutes * 60_000;
  while (performance.now() < endAt && violations.length === 0) {
    const { fault, rightAfterMs, violations: found } = await round(world, random);
    survived.push({ fault, rightAfterMs });
    violations.push(...found);
    console.log(`${found.length === 0 ? 'ok    ' : 'FAILED'} ${fault}: all right after ${String(rightAfterMs)} ms`);
  }
  const figures = { seed, minutes, ...(await figuresOf(world, survived)), violations };
  console.log(tableOf(figures));
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(figures, null, 2)}\n`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}

await main();
// whatever a library keeps open must not keep a finished run waiting
process.exit();
