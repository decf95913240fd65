// `npm run migration -- NAME` writes the next migration from prisma/schema.prisma; `-- --check` only tells whether one is
// missing (exit 1, with its SQL). Uses a Postgres of its own, for as long as it runs.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../src/store/embedded.js';
import { createMigration, drift } from '../src/store/migrate.js';

async function main(url: string, argument: string): Promise<void> {
  if (argument === '--check') {
    const missing = await drift(url);
    if (missing === null) return;
    console.error(`prisma/schema.prisma has what no migration makes:\n${missing}`);
    process.exitCode = 1;
    return;
  }
  const made = await createMigration(url, argument);
  console.log(made ? `wrote ${path.relative(process.cwd(), made)}` : 'nothing to write: the migrations are complete');
}

const argument = process.argv[2];
if (argument === undefined || process.argv.length > 3) {
  console.error('usage: npm run migration -- NAME | --check');
  process.exit(2);
}
const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tidemark-migration-'));
try {
  await using server = await startEmbeddedPostgres({ dataDir, settings: { fsync: 'off' } });
  await main(server.url, argument);
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
