// What is known of an operation besides its answer: the root fields it asks for, how long it took, the codes of its errors.
// The name of an operation is that of its root field: the client's own name for it is free text.
import {
  getOperationAST,
  Kind,
  type DocumentNode,
  type ExecutionArgs,
  type FragmentDefinitionNode,
  type GraphQLError,
  type SelectionSetNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Metrics } from '../metrics.js';
import { rootFields } from '../schema/index.js';
import type { OperationContext, ServerContext } from './yoga.js';

/** Collected while a request or a socket is served, for its line in the log. */
export interface Notes {
  readonly fields: Set<string>;
  readonly codes: Set<string>;
}
export function noteCodes(notes: Notes, errors: readonly GraphQLError[]): void {
  for (const { extensions } of errors) notes.codes.add(String(extensions['code']));
}
export const newNotes = (): Notes => ({ fields: new Set(), codes: new Set() });

/** Every name that an operation can have. */
export const operationNames: readonly string[] = [
  ...rootFields.query,
  ...rootFields.mutation,
  ...rootFields.subscription,
  'introspection',
  'many',
];

/** Of a valid document: names of the schema, each once. */
export function rootFieldsOf(document: DocumentNode, operationName: string | null | undefined): Set<string> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const found = new Set<string>();
  const entered = new Set<string>(); // a document may spread one fragment a thousand times
  const collect = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) found.add(selection.name.value);
      else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else if (!entered.has(selection.name.value)) {
        entered.add(selection.name.value);
        collect(fragments.get(selection.name.value)?.selectionSet);
      }
    }
  };
  collect(getOperationAST(document, operationName)?.selectionSet);
  return found;
}

export function nameOf(fields: ReadonlySet<string>): string {
  const named = [...fields].filter((field) => !field.startsWith('__'));
  const [first = 'introspection', ...more] = named;
  return more.length > 0 ? 'many' : first;
}

/** An operation that is refused before it runs has no name; its error is counted. */
export function useMeasure(metrics: Metrics): Plugin<OperationContext, ServerContext> {
  const begin = ({ document, operationName, contextValue }: ExecutionArgs): (() => void) => {
    const startedAt = performance.now();
    const fields = rootFieldsOf(document, operationName);
    const { notes } = contextValue as OperationContext;
    for (const field of fields) notes.fields.add(field);
    return () => {
      metrics.operationTook(nameOf(fields), performance.now() - startedAt);
    };
  };
  return {
    onExecute: ({ args }) => ({ onExecuteDone: begin(args) }),
    onSubscribe: ({ args }) => ({ onSubscribeResult: begin(args) }),
  };
}
