// The scalars: positions, times and content.
import { GraphQLError } from 'graphql';
import { GraphQLDateTime, GraphQLJSON } from 'graphql-scalars';
import { Kind } from 'graphql';
import { builder } from './builder.js';

function requireSeq(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new GraphQLError('Seq is a non-negative integer up to 2^53 - 1', { extensions: { code: 'BAD_USER_INPUT' } });
}

builder.scalarType('Seq', {
  description:
    'A position in a conversation’s log: 1, 2, 3 … dense; 0 is before the first. On the wire a JSON number, an integer from 0 to 2^53 − 1; strings and fractions are BAD_USER_INPUT.',
  serialize: requireSeq,
  parseValue: requireSeq,
  parseLiteral: (node) => requireSeq(node.kind === Kind.INT ? Number(node.value) : undefined),
});
builder.addScalarType('DateTime', GraphQLDateTime, { description: 'An instant, ISO 8601 in UTC with milliseconds.' });
builder.addScalarType('JSON', GraphQLJSON, { description: 'Any JSON value.' });
