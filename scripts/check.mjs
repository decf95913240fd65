// `npm run check`: everything but the tests, cheap gates first, all of them even when one fails; a line for each.
// `npm run check -- lint types` runs those named.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);

/** The program of an installed package, without a shell or npx in between. */
function program(name, bin = name) {
  const file = require.resolve(`${name}/package.json`);
  const { bin: bins } = require(file);
  return path.join(path.dirname(file), typeof bins === 'string' ? bins : bins[bin]);
}

const tsx = (script, ...args) => [program('tsx'), `scripts/${script}`, ...args];
const gates = {
  compose: tsx('check-compose.ts'),
  schema: tsx('schema.ts', '--check'),
  migrations: tsx('migration.ts', '--check'),
  format: [program('prettier'), '--check', '--log-level', 'warn', '.'],
  types: [program('typescript', 'tsc'), '--noEmit', '-p', '.'],
  lint: [program('eslint'), '--max-warnings', '0', '.'],
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(gates, name));
if (unknown.length > 0) {
  console.error(`no such gate: ${unknown.join(', ')} (there are ${Object.keys(gates).join(', ')})`);
  process.exit(2);
}

for (const name of asked.length > 0 ? asked : Object.keys(gates)) {
  const startedAt = performance.now();
  // Caught and printed afterwards, so that the line comes first and a failing gate's words stand below it.
  const run = spawnSync(process.execPath, gates[name], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  const failed = run.status !== 0;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5);
  console.log(`${failed ? 'FAILED' : 'ok    '} ${name.padEnd(11)} ${seconds} s`);
  if (!failed) continue;
  process.exitCode = 1;
  console.log(`${run.stdout}${run.stderr}${run.error?.message ?? ''}`.trimEnd().replace(/^/gm, '       '));
}
