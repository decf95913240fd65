// `npm run generate`: writes the Prisma client to src/generated. Says nothing when it works.
// Needs no engine download: the client reads no binary, and migrations run on the WebAssembly engine.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const prisma = path.join(path.dirname(createRequire(import.meta.url).resolve('prisma/package.json')), 'build/index.js');

const run = spawnSync(process.execPath, [prisma, 'generate', '--no-hints'], {
  cwd: root,
  encoding: 'utf8',
  env: {
    ...process.env,
    // Any executable stops Prisma from looking for its native engine; generate never runs it.
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    CHECKPOINT_DISABLE: '1',
    PRISMA_HIDE_UPDATE_MESSAGE: '1',
  },
});
if (run.status !== 0) {
  process.stderr.write(`${run.stdout}${run.stderr}${run.error ? `${run.error.message}\n` : ''}`);
  process.exit(1);
}
