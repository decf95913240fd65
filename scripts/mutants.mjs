// `npm run mutants`: puts every wrong rule into the log core, one at a time, and wants the random histories to notice it.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = path.join(path.dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const options = { cwd: root, stdio: 'inherit', env: { ...process.env, TIDEMARK_MUTANTS: 'all' } };
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--project', 'pg', 'test/model/wrong-rules', '--reporter=verbose'],
  options,
);
process.exit(status ?? 1);
