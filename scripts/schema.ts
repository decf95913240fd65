// Writes schema.graphql from the code; with --check it only compares, and exits 1 when they differ.
import { readFile, writeFile } from 'node:fs/promises';
import { lexicographicSortSchema, printSchema } from 'graphql';
import { schema } from '../src/schema/index.js';

const file = new URL('../schema.graphql', import.meta.url);
const printed = `${printSchema(lexicographicSortSchema(schema))}\n`;

if (process.argv.includes('--check')) {
  const stored = await readFile(file, 'utf8').catch(() => '');
  if (stored !== printed) {
    console.error('schema.graphql is not what the code says: run `npm run schema`');
    process.exitCode = 1;
  }
} else {
  await writeFile(file, printed);
}
