// Would the tests notice a wrong rule? A few here, every one by `npm run mutants` (TIDEMARK_MUTANTS=all).
import { expect, test } from 'vitest';
import { startWorld } from '../support/world.js';
import { observeTable } from '../table/rows.js';
import { FailpointGate } from './failpoint-gate.js';
import { runHistories } from './property.js';
import { putWrongRule, wrongRules } from './wrong-rules.js';

const wrongOf = async (rule: string) => {
  await using world = await startWorld();
  await putWrongRule(world.app.deps.store.pool, rule);
  const rows = await observeTable(world);
  return rows
    .filter(({ expected, observed }) => JSON.stringify(expected) !== JSON.stringify(observed))
    .map(({ check }) => check);
};

test('[R1] the table notices “last write wins”', async () => {
  expect(await wrongOf('markRead: last write wins')).toContain('09-read-max-wins');
});

test('[D3] the table notices “read derived from delivery”', async () => {
  expect(await wrongOf('unread: read derived from delivery')).toContain('09-reinstall');
});

const some = ['rejoin forgets what was hidden', 'send: own ordinal not kept'];
const asked = process.env['TIDEMARK_MUTANTS'];
const noticed =
  asked === undefined ? some : Object.keys(wrongRules).filter((rule) => asked === 'all' || rule.includes(asked));

test.each(noticed)(
  '[U1] random histories notice “%s”',
  async (rule) => {
    const gate = new FailpointGate();
    await using world = await startWorld({ overrides: { failpoint: gate.failpoint } });
    await putWrongRule(world.app.deps.store.pool, rule);
    await expect(runHistories(world, gate, { seed: 7, runs: 60, stepsPerRun: 40 })).rejects.toThrow();
  },
  600_000,
);

test('every wrong rule still fits the log core', async () => {
  await using world = await startWorld();
  for (const rule of Object.keys(wrongRules)) await putWrongRule(world.app.deps.store.pool, rule);
});
