// The rules of docs/SPEC.md against the tests: each built rule is cited by a test, and whatever a test cites is a built rule.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

const testDir = fileURLToPath(new URL('.', import.meta.url));

interface Rules {
  readonly built: readonly string[];
  readonly notYet: readonly string[];
}

function rulesOf(spec: string): Rules {
  const found = [...spec.matchAll(/^- (?:\*\*([A-Z]\d+)\*\* |([A-Z]\d+) \(not yet\) )/gm)];
  return { built: found.flatMap(([, id]) => id ?? []), notYet: found.flatMap(([, , id]) => id ?? []) };
}

/** Ids cited at the front of a string of a test file: '[R2] …', '[R2, R4] …', '[R2][R4] …'; also in tables of cases. */
function citedIn(fileName: string, source: string): string[] {
  const cited: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateHead(node)) {
      const front = /^(?:\s*\[[A-Z]\d+(?:, ?[A-Z]\d+)*\])+/.exec(node.text)?.[0] ?? '';
      cited.push(...(front.match(/[A-Z]\d+/g) ?? []));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest));
  return cited;
}

function differences({ built, notYet }: Rules, cited: ReadonlySet<string>): string[] {
  const all = [...built, ...notYet];
  return [
    ...all.filter((id, index) => all.indexOf(id) !== index).map((id) => `${id} stands twice in docs/SPEC.md`),
    ...built.filter((id) => !cited.has(id)).map((id) => `${id} is built, but no test cites it`),
    ...notYet.filter((id) => cited.has(id)).map((id) => `${id} is cited, but docs/SPEC.md says "not yet"`),
    ...[...cited].filter((id) => !all.includes(id)).map((id) => `${id} is cited, but docs/SPEC.md has no such rule`),
  ];
}

it('every built rule is cited by a test, and every cited rule is built', async () => {
  const rules = rulesOf(await readFile(path.join(testDir, '../docs/SPEC.md'), 'utf8'));
  expect(rules.built.length).toBeGreaterThan(40);
  const files = await readdir(testDir, { recursive: true });
  const sources = files.filter((name) => name.endsWith('.ts') && name !== 'spec.test.ts');
  const cited = new Set<string>();
  for (const name of sources) {
    for (const id of citedIn(name, await readFile(path.join(testDir, name), 'utf8'))) cited.add(id);
  }
  expect(differences(rules, cited)).toEqual([]);
});

it('finds citations in titles, templates and tables, and nothing else', () => {
  const source = `
    it('[A1] one', () => {});
    it.each([['[A2, B3] in a table', 1]])('%s', () => {});
    test(\`[A4][B5] \${x}\`, () => {});
    // [C6] a comment
    const text = 'see [C7]', list = '[C8';`;
  expect(citedIn('a.ts', source)).toEqual(['A1', 'A2', 'B3', 'A4', 'B5']);
});

it('tells what is missing, too early, unknown or doubled', () => {
  const rules = rulesOf(
    '- **A1** is built\n- A2 (not yet) is not\n- **A3** too\n- **A3** again\n  **A9** inside a text',
  );
  expect(rules).toEqual({ built: ['A1', 'A3', 'A3'], notYet: ['A2'] });
  expect(differences(rules, new Set(['A2', 'A3', 'B1']))).toEqual([
    'A3 stands twice in docs/SPEC.md',
    'A1 is built, but no test cites it',
    'A2 is cited, but docs/SPEC.md says "not yet"',
    'B1 is cited, but docs/SPEC.md has no such rule',
  ]);
});
