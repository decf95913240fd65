// What an operation selects below its root field: so that a hint loads what will be sent, and nothing else (H1).
import { Kind, type FieldNode, type GraphQLResolveInfo, type SelectionSetNode } from 'graphql';

/** Field name → the names of the fields selected in it; fields behind @skip and @include count as selected. */
export type Selection = ReadonlyMap<string, ReadonlySet<string>>;

/** The fields that would be resolved on an object of one of these types (an object type and its unions). */
export function selectionOn(info: GraphQLResolveInfo, types: readonly string[]): Selection {
  const found = new Map<string, Set<string>>();
  for (const { selectionSet } of info.fieldNodes) {
    for (const field of fieldsOf(info, selectionSet, types)) {
      const inner = found.get(field.name.value) ?? new Set<string>();
      for (const { name } of fieldsOf(info, field.selectionSet, null)) inner.add(name.value);
      found.set(field.name.value, inner);
    }
  }
  return found;
}

/** Whether nothing but these fields is selected below the field: then it needs no look-up. */
export function selectsOnly(info: GraphQLResolveInfo, fields: readonly string[]): boolean {
  return info.fieldNodes.every(({ selectionSet }) =>
    fieldsOf(info, selectionSet, null).every(({ name }) => name.value === '__typename' || fields.includes(name.value)),
  );
}

/** The fields of a selection set with its fragments, of those only that fit the types; null: all. */
function fieldsOf(
  info: GraphQLResolveInfo,
  set: SelectionSetNode | undefined,
  types: readonly string[] | null,
  // each fragment once, or fragments that spread one another twice would take for ever
  seen = new Set<string>(),
): FieldNode[] {
  return (set?.selections ?? []).flatMap((selection): FieldNode[] => {
    if (selection.kind === Kind.FIELD) return [selection];
    if (selection.kind === Kind.FRAGMENT_SPREAD) {
      if (seen.has(selection.name.value)) return [];
      seen.add(selection.name.value);
    }
    const fragment = selection.kind === Kind.FRAGMENT_SPREAD ? info.fragments[selection.name.value] : selection;
    const on = fragment?.typeCondition?.name.value;
    return types === null || on === undefined || types.includes(on)
      ? fieldsOf(info, fragment?.selectionSet, types, seen)
      : [];
  });
}
