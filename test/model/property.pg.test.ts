// The model-based property test: at least 1,000 commands against plain counting. TIDEMARK_SEED repeats a run, TIDEMARK_RUNS
// makes it longer (`npm run test:long`).
import { expect, test } from 'vitest';
import { startWorld } from '../support/world.js';
import { FailpointGate } from './failpoint-gate.js';
import { runHistories } from './property.js';

const seed = Number(process.env['TIDEMARK_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env['TIDEMARK_RUNS'] ?? 17);
const stepsPerRun = 60;

test('[U1] [U2] [U3] [U5] [U6] [R1] [R2] [R3] [D1] [D2] [L1] [L2] [L3] [L5] [L7] [M1] [S1] [S3] [S4] [C1] [C2] [C3] random histories answer like a plain count', async () => {
  console.log(`seed ${String(seed)} (TIDEMARK_SEED=${String(seed)} repeats it), ${String(runs * stepsPerRun)} steps`);
  const gate = new FailpointGate();
  await using world = await startWorld({ overrides: { failpoint: gate.failpoint } });
  const tally = await runHistories(world, gate, { seed, runs, stepsPerRun });
  expect(tally.get('steps')).toBeGreaterThanOrEqual(1_000);
  console.log(
    [...tally]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([what, n]) => `${what} ${String(n)}`)
      .join(', '),
  );
}, 600_000);
