// The Pothos builder: what every file of this folder adds its types to, and the price of a query (P1).
import SchemaBuilder from '@pothos/core';
import ComplexityPlugin, { ComplexityErrorKind } from '@pothos/plugin-complexity';
import { overLimit } from '../domain/errors.js';
import type { Seq } from '../model.js';
import type { Context } from './context.js';

const max = { depth: 12, breadth: 400, complexity: 60_000 };

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
    complexityError: (kind) => {
      switch (kind) {
        case ComplexityErrorKind.Depth:
          return overLimit('the depth of a query', max.depth, 'levels');
        case ComplexityErrorKind.Breadth:
          return overLimit('a query', max.breadth, 'fields');
        case ComplexityErrorKind.Complexity:
          return overLimit('the cost of a query', max.complexity, 'fields to resolve');
      }
    },
  },
});

/** The price of a page: what is selected in it, as many times as it may have items. */
export const priced = (items: number | null | undefined, fallback: number) => ({
  field: 1,
  multiplier: Math.max(1, items ?? fallback),
});

builder.queryType({ description: 'Every field needs a credential; without one only introspection answers.' });
builder.mutationType({
  description:
    'Root fields are nullable: one that fails does not take the committed answers of its siblings with it. A failed mutation has changed nothing.',
});
builder.subscriptionType({
  description:
    'Over WebSocket (graphql-transport-ws) or server-sent events, for devices only. A subscription is live when its first item arrives. Hints may jump and may be lost: then an item says `resync`, and the client queries again.',
});

export type SchemaTypes = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer Types> ? Types : never;
