// `npm run test:long -- MINUTES` (10): the randomised tests again and again, each time with another seed and longer histories,
// until the time is over or one fails. What failed is repeated with the TIDEMARK_SEED and TIDEMARK_RUNS that are printed.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = path.join(path.dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const minutes = Number(process.argv[2] ?? 10);
if (!(minutes > 0) || process.argv.length > 3) {
  console.error('usage: npm run test:long -- MINUTES');
  process.exit(2);
}

const endAt = performance.now() + minutes * 60_000;
for (let round = 1; performance.now() < endAt; round++) {
  const env = { TIDEMARK_SEED: String(randomInt(2 ** 31)), TIDEMARK_RUNS: process.env.TIDEMARK_RUNS ?? '40' };
  const told = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  console.log(`round ${round}: ${told.join(' ')}`);
  const options = { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } };
  const { status } = spawnSync(process.execPath, [vitest, 'run', 'property'], options);
  if (status !== 0) {
    console.error(`round ${round} failed: ${told.join(' ')} npx vitest run property`);
    process.exit(1);
  }
}
