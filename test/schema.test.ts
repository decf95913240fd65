// schema.graphql is what the code says, and the API's manual: everything in it that a client asks for is described.
import { readFile } from 'node:fs/promises';
import { isObjectType, isUnionType, lexicographicSortSchema, printSchema } from 'graphql';
import { expect, it } from 'vitest';
import { errorCodes } from '../src/domain/errors.js';
import { schema } from '../src/schema/index.js';

const fieldsOf = (name: string) => {
  const type = schema.getType(name);
  return isObjectType(type) ? Object.values(type.getFields()) : [];
};

it('schema.graphql is up to date: `npm run schema` writes it', async () => {
  const stored = await readFile(new URL('../schema.graphql', import.meta.url), 'utf8');
  expect(`${printSchema(lexicographicSortSchema(schema))}\n`).toBe(stored);
});

it('every query, mutation and subscription says what it does', () => {
  const fields = ['Query', 'Mutation', 'Subscription'].flatMap(fieldsOf);
  expect(fields.length).toBeGreaterThan(20);
  expect(fields.filter(({ description }) => !description).map(({ name }) => name)).toEqual([]);
});

it('the names that users know stay', () => {
  const names = ['Query', 'Mutation', 'Subscription'].flatMap(fieldsOf).map(({ name }) => name);
  const known = ['convs', 'sync', 'history', 'markRead', 'ack', 'message', 'readChanged'];
  expect(names).toEqual(expect.arrayContaining(known));
});

it('root fields of a mutation are nullable: one that fails takes no other with it', () => {
  expect(fieldsOf('Mutation').filter(({ type }) => String(type).endsWith('!'))).toEqual([]);
});

it('the list of error codes is closed, and in the schema', () => {
  const type = schema.getType('ErrorCode')?.toConfig() as { values?: Record<string, { description?: string }> };
  expect(Object.keys(type.values ?? {}).toSorted()).toEqual(Object.keys(errorCodes).toSorted());
  expect(Object.values(type.values ?? {}).every(({ description }) => description)).toBe(true);
});

it('[H10] a field that several types of a union have is of one type: one document may select it on each', () => {
  const unions = Object.values(schema.getTypeMap()).filter(isUnionType);
  expect(unions.map(({ name }) => name).toSorted()).toEqual(['Change', 'Hint']);
  for (const union of unions) {
    const byField = new Map<string, Set<string>>();
    for (const { name, type } of union.getTypes().flatMap((each) => fieldsOf(each.name))) {
      byField.set(name, (byField.get(name) ?? new Set()).add(String(type)));
    }
    const different = [...byField].filter(([, types]) => types.size > 1).map(([name, types]) => [name, ...types]);
    expect(different).toEqual([]);
  }
});
