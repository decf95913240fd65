// Relay connections: edges, nodes and pageInfo over a page of the domain.
import type { ObjectRef } from '@pothos/core';
import type { Page } from '../model.js';
import { builder, type SchemaTypes } from './builder.js';

interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | null;
  readonly endCursor: string | null;
}
export interface ConnectionShape<Node> {
  readonly edges: readonly { readonly cursor: string; readonly node: Node }[];
  readonly nodes: readonly Node[];
  readonly pageInfo: PageInfo;
}

export function toConnection<Node>(page: Page<Node>, toCursor: (node: Node) => string): ConnectionShape<Node> {
  const edges = page.items.map((node) => ({ node, cursor: toCursor(node) }));
  return {
    edges,
    nodes: page.items,
    pageInfo: {
      hasNextPage: page.hasNext,
      hasPreviousPage: page.hasPrevious,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

const pageInfo = builder.objectRef<PageInfo>('PageInfo').implement({
  description: 'Where a page stands in its connection.',
  fields: (t) => ({
    hasNextPage: t.exposeBoolean('hasNextPage'),
    hasPreviousPage: t.exposeBoolean('hasPreviousPage'),
    startCursor: t.exposeString('startCursor', { nullable: true }),
    endCursor: t.exposeString('endCursor', { nullable: true }),
  }),
});

/** The types `<name>Connection` and `<name>Edge` over `node`. More fields are added by whoever has them. */
export function connectionOf<Node, Shape extends ConnectionShape<Node> = ConnectionShape<Node>>(
  name: string,
  node: ObjectRef<SchemaTypes, Node>,
  description: string,
): ObjectRef<SchemaTypes, Shape> {
  const edge = builder.objectRef<{ readonly cursor: string; readonly node: Node }>(`${name}Edge`).implement({
    description: `An item of ${name}Connection and its cursor.`,
    fields: (t) => ({
      cursor: t.exposeString('cursor'),
      node: t.field({ type: node, resolve: (parent) => parent.node as never }),
    }),
  });
  return builder.objectRef<Shape>(`${name}Connection`).implement({
    description,
    fields: (t) => ({
      edges: t.field({ type: [edge], resolve: ({ edges }) => edges }),
      nodes: t.field({ type: [node], resolve: ({ nodes }) => nodes as never }),
      pageInfo: t.field({ type: pageInfo, resolve: (parent) => parent.pageInfo }),
    }),
  });
}
