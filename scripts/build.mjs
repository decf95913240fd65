// `npm run build`, and `prepare` during `npm ci`: src → dist. All or nothing: a failed build leaves no dist.
// Does nothing where there is nothing to build: no src (an installed package) or no compiler (production dependencies only).
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = path.join(root, 'dist');
const require = createRequire(import.meta.url);

function resolve(name) {
  try {
    return require.resolve(name);
  } catch {
    return null;
  }
}

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (status === 0) return;
  fs.rmSync(dist, { recursive: true, force: true });
  process.exit(1);
}

const typescript = resolve('typescript/package.json');
if (!fs.existsSync(path.join(root, 'src'))) process.exit(0);
if (!typescript || !resolve('prisma/package.json')) {
  console.error('not built: TypeScript and Prisma are development dependencies; `npm ci` installs them');
  process.exit(0);
}

run(fileURLToPath(new URL('generate.mjs', import.meta.url)));
fs.rmSync(dist, { recursive: true, force: true });
run(path.join(path.dirname(typescript), 'bin/tsc'), '-p', 'tsconfig.build.json', '--noEmitOnError');
// Last, for start.mjs takes it as the sign that the build is complete.
const main = path.join(dist, 'main.js');
if (fs.existsSync(main)) fs.chmodSync(main, 0o755);
