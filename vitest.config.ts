// Tests by what they need, told by the file's suffix; `vitest run --project pg` runs one kind. The servers behind them
// are started only when a kind that needs them is part of the run: see test/support/global-setup.ts.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const KINDS = ['pg', 'redis', 'e2e'] as const;
const filesOf = (kind: string) => `test/**/*.${kind}.test.ts`;

export default defineConfig({
  // Vite would take graphql's ES modules and Node, for the packages, its CommonJS: two copies that refuse each other's schemas.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    pool: 'forks',
    // Loading the service again for each file costs more than most files' tests.
    isolate: false,
    // Most of the time goes into waiting for Postgres, so even two cores run two files.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: KINDS.map(filesOf) } },
      ...KINDS.map((kind) => ({
        extends: true as const,
        test: {
          name: kind,
          include: [filesOf(kind)],
          globalSetup: 'test/support/global-setup.ts',
          // Whole processes: after everything else, one file at a time.
          ...(kind === 'e2e' && {
            maxWorkers: 1,
            sequence: { groupOrder: 1 },
            testTimeout: 120_000,
            hookTimeout: 120_000,
          }),
        },
      })),
    ],
  },
});
