// The Pothos builder: what every file of this folder adds its types to, and the price of a query (P1).
import SchemaBuilder from '@pothos/core';
import ComplexityPlugin, { ComplexityErrorKind, complexityFromQuery } from '@pothos/plugin-complexity';
import { Kind, type GraphQLResolveInfo } from 'graphql';
import { overLimit } from '../domain/errors.js';
import type { Seq } from '../model.js';
import type { Context } from './context.js';

const max = { depth: 12, breadth: 400, complexity: 60_000 };

function tooMuch(kind: ComplexityErrorKind) {
  switch (kind) {
    case ComplexityErrorKind.Depth:
      return overLimit('the depth of a query', max.depth, 'levels');
    case ComplexityErrorKind.Breadth:
      return overLimit('a query', max.breadth, 'fields');
    case ComplexityErrorKind.Complexity:
      return overLimit('the cost of a query', max.complexity, 'fields to resolve');
  }
}

export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    Seq: { Input: Seq; Output: Seq };
    DateTime: { Input: Date; Output: Date };
    JSON: { Input: unknown; Output: unknown };
  };
}>({
  plugins: [ComplexityPlugin],
  defaultFieldNullability: false,
  complexity: {
    defaultComplexity: 1,
    // a list costs what its page size says, see `priced`; without one it is short
    defaultListMultiplier: 1,
    limit: max,
    complexityError: tooMuch,
  },
});

/** What a field costs that asks the database by itself, in fields of a row that is there already. */
export const statement = 200;

/**
 * The price of a page: what is selected in it, as many times as it may have items. More than any page may have is priced as
 * the largest, so that the page's own limit is what the answer names.
 */
export const priced = (items: number | null | undefined, fallback: number, base = statement) => ({
  field: base,
  multiplier: Math.min(1_000, Math.max(1, items ?? fallback)),
});

/** Pothos prices a subscription at its first item; this does at the start, before anything listens. */
export function requireAffordable(context: Context, info: GraphQLResolveInfo): void {
  const definitions = [info.operation, ...Object.values(info.fragments)];
  const { depth, breadth, complexity } = complexityFromQuery(
    { kind: Kind.DOCUMENT, definitions },
    { schema: info.schema, ctx: context, variables: info.variableValues },
  );
  if (depth > max.depth) throw tooMuch(ComplexityErrorKind.Depth);
  if (breadth > max.breadth) throw tooMuch(ComplexityErrorKind.Breadth);
  if (complexity > max.complexity) throw tooMuch(ComplexityErrorKind.Complexity);
}

builder.queryType({
  description:
    'Every field needs a credential; without one only introspection answers. An operation has at most 12 levels, 400 fields, 4,000 tokens and a cost of 60,000 (fields times page sizes, 200 for a field that asks the database by itself); a request body at most 256 KiB. Breaking one is BAD_USER_INPUT.',
});
builder.mutationType({
  description:
    'Root fields are nullable: one that fails does not take the committed answers of its siblings with it. A failed mutation has changed nothing, but for INTERNAL_SERVER_ERROR: then nothing is known, and it may have been committed. Repeat it as it was, with the same clientId, deviceId or installId: repeating any mutation is safe. An answer with status 503 has run nothing; `Retry-After` says when to come back.',
});
builder.subscriptionType({
  description:
    'Over WebSocket (graphql-transport-ws; messages of at most 64 KiB, at most 50 operations a socket) or server-sent events, for devices only. A subscription is live when its first item arrives. Hints may jump and may be lost: then an item says `resync`, and the client queries again.',
});

export type SchemaTypes = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer Types> ? Types : never;
