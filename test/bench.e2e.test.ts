// `npm run bench` at tiny sizes: that each bench runs to its end and prints its line. What it measures here means nothing.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const main = fileURLToPath(new URL('../bench/main.ts', import.meta.url));
const bench = (...args: string[]) => promisify(execFile)(process.execPath, ['--import', 'tsx', main, ...args]);

interface Line {
  readonly bench: string;
  readonly rows: readonly unknown[];
  readonly ratio: Readonly<Record<string, unknown>>;
}
const row = {
  name: expect.any(String) as string,
  value: expect.any(Number) as number,
  unit: expect.any(String) as string,
};

it('prints one JSON line for each bench: rows, and ratios to baselines of the same run', async () => {
  const names = ['unread', 'writes', 'api', 'hints', 'large'];
  const { stdout } = await bench(...names, '--json', '--tiny');
  const lines = stdout.trimEnd().split('\n');
  const found = lines.map((line) => JSON.parse(line) as Line);
  expect(found.map((line) => line.bench)).toEqual(names);
  for (const { rows, ratio } of found) {
    expect(rows.length).toBeGreaterThan(0);
    for (const one of rows) expect(one).toEqual(row);
    expect(Object.keys(ratio).length).toBeGreaterThan(0);
    for (const [key, value] of Object.entries(ratio)) {
      expect(key).toMatch(/^[^.]+\.[^.]+$/u);
      expect(value).toBeGreaterThan(0);
    }
  }
}, 240_000);

it('lists the benches when none is named, and refuses an unknown one', async () => {
  expect((await bench()).stdout).toMatch(/unread[^]*writes[^]*api[^]*hints[^]*large/u);
  await expect(bench('nothing')).rejects.toMatchObject({ code: 2 });
});
