/**
 * Brings field sets that were written under an older schema up to the present one
 * (structured-merge-diff: typed/reconcile_schema.go): where a list or map became atomic, who owned
 * something in it now owns it as a whole.
 */
import { type FieldSet, FieldSetBuilder, recursiveDifferenceOf, unionOf } from "./field-set.ts";
import { fieldNameOf, type Path, type PathElement } from "./path-element.ts";
import type { TypeAtom } from "./typed-schema.ts";

/** Returns the same set if nothing changed. */
export function reconcileFieldSet(type: TypeAtom, set: FieldSet): FieldSet {
  const atoms: Path[] = [];
  visit(type, set, [], atoms);
  if (atoms.length === 0) return set;
  const changed = new FieldSetBuilder();
  for (const path of atoms) changed.insert(path);
  const paths = changed.build();
  return unionOf(recursiveDifferenceOf(set, paths), paths);
}

function visit(type: TypeAtom, set: FieldSet, path: PathElement[], atoms: Path[]): void {
  if (set.children === undefined) return;
  const { map, list } = type;
  if (map !== undefined) {
    if (map.free) return;
    if (map.atomic) {
      atoms.push([...path]);
      return;
    }
  } else if (type.scalar !== undefined || list === undefined) {
    return;
  } else if (list.atomic) {
    atoms.push([...path]);
    return;
  }
  for (const [element, child] of set.children) {
    const name = fieldNameOf(element);
    const below =
      map === undefined
        ? list?.item
        : ((name === undefined ? undefined : map.fields.get(name)) ?? map.element);
    if (below === undefined) continue;
    path.push(element);
    visit(below, child, path, atoms);
    path.pop();
  }
}
