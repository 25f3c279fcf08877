/**
 * Who owns what after a write (structured-merge-diff: merge/update.go). One updater serves one
 * request: it remembers the conversions that the request needed.
 */
import type { Pauses } from "@quorate/host";
import { compareUtf8, type KubeObject, sameJson } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { ConflictsError } from "./apply-conflict.ts";
import {
  differenceOf,
  EMPTY_SET,
  type FieldSet,
  FieldSetBuilder,
  intersectionOf,
  isEmptySet,
  pathsOf,
  recursiveDifferenceOf,
  unionOf,
} from "./field-set.ts";
import type { Managers, VersionedSet } from "./managed-fields.ts";
import { fieldNameOf, type Path, type PathElement } from "./path-element.ts";
import { type Comparison, compareTyped } from "./typed-compare.ts";
import { fieldSetOfValue, removeItems, withNamedFields } from "./typed-fields.ts";
import { mergeTyped } from "./typed-merge.ts";
import type { TypeAtom } from "./typed-schema.ts";
import { TypedError, validateTyped } from "./typed-value.ts";

/** The versions of a kind. */
export interface Versions {
  /** The type of objects of a version; undefined where it is not served. */
  typeOf(apiVersion: string): TypeAtom | undefined;
  convert(object: KubeObject, apiVersion: string): Promise<KubeObject>;
  /** What the endpoint resets: no manager owns it. */
  readonly resetFields: FieldSet | undefined;
}

/** An object in a version, with its type. */
interface Typed {
  readonly type: TypeAtom;
  readonly value: KubeObject;
  readonly apiVersion: string;
}

export class FieldsUpdater {
  readonly #versions: Versions;
  readonly #apiVersion: string;
  readonly #type: TypeAtom;
  readonly #slices: Pauses | undefined;
  readonly #converted = new Map<KubeObject, Map<string, KubeObject>>();

  /**
   * @param apiVersion of the request, whose objects are in it
   * @param slices between which other work runs
   */
  constructor(versions: Versions, apiVersion: string, slices?: Pauses) {
    const type = versions.typeOf(apiVersion);
    if (type === undefined) throw new TypedError(`no corresponding type for ${apiVersion}`);
    this.#versions = versions;
    this.#apiVersion = apiVersion;
    this.#type = type;
    this.#slices = slices;
  }

  /** After a create, update or patch: `manager` owns what changed. */
  async update(
    present: KubeObject,
    object: KubeObject,
    managers: Managers,
    manager: string,
  ): Promise<Map<string, VersionedSet>> {
    const before = await this.#reconcile(present, managers);
    const [after, changes] = await this.#changeOwners(present, object, before, manager, true);
    const own = after.get(manager)?.set ?? EMPTY_SET;
    const kept = differenceOf(own, changes.removed);
    const owned = this.#withoutReset(unionOf(unionOf(kept, changes.modified), changes.added));
    if (isEmptySet(owned)) after.delete(manager);
    else after.set(manager, { set: owned, apiVersion: this.#apiVersion, applied: false });
    return after;
  }

  /**
   * Merges what `manager` applies, and removes what it applied before and does not now.
   * @returns undefined in place of the object if nothing changed
   * @throws ConflictsError unless `force`
   */
  async apply(
    present: KubeObject,
    applied: KubeObject,
    managers: Managers,
    manager: string,
    force: boolean,
  ): Promise<[KubeObject | undefined, Map<string, VersionedSet>]> {
    const before = await this.#reconcile(present, managers);
    const merged = this.#merge(present, applied);
    await this.#slices?.next();
    const last = before.get(manager);
    const set = this.#withoutReset(fieldSetOfValue(this.#type, applied));
    await this.#slices?.next();
    before.set(manager, { set, apiVersion: this.#apiVersion, applied: true });
    const object = await this.#prune(merged, before, last);
    await this.#slices?.next();
    const [after] = await this.#changeOwners(present, object, before, manager, force);
    return [sameJson(present, object) ? undefined : object, after];
  }

  #merge(present: KubeObject, applied: KubeObject): KubeObject {
    try {
      return mergeTyped(this.#type, present, applied) as KubeObject;
    } catch (error) {
      if (!(error instanceof TypedError)) throw error;
      throw new TypedError(`failed to merge config: ${error.message}`);
    }
  }

  #withoutReset(set: FieldSet): FieldSet {
    const reset = this.#versions.resetFields;
    return reset === undefined ? set : recursiveDifferenceOf(set, reset);
  }

  /**
   * The object in a version; undefined where that is not served any more.
   * @param what is named before the error where the object does not fit the version's schema
   */
  async #in(object: KubeObject, apiVersion: string, what: string): Promise<Typed | undefined> {
    const type = this.#versions.typeOf(apiVersion);
    if (type === undefined) return undefined;
    if (object.apiVersion === apiVersion) return { type, value: object, apiVersion };
    let versions = this.#converted.get(object);
    if (versions === undefined) this.#converted.set(object, (versions = new Map()));
    let value = versions.get(apiVersion);
    if (value === undefined) {
      value = await this.#versions.convert(object, apiVersion);
      check(type, value, what);
      versions.set(apiVersion, value);
    }
    return { type, value, apiVersion };
  }

  /** Adapts sets to changed schemas, and drops versions that are not served any more. */
  async #reconcile(present: KubeObject, managers: Managers): Promise<Map<string, VersionedSet>> {
    const reconciled = new Map<string, VersionedSet>();
    for (const [manager, versioned] of managers) {
      const typed = await this.#in(present, versioned.apiVersion, "");
      if (typed === undefined) continue;
      const set = reconcileFieldSet(typed.type, versioned.set);
      await this.#slices?.next();
      reconciled.set(manager, set === versioned.set ? versioned : { ...versioned, set });
    }
    return reconciled;
  }

  /** Takes what changed away from all managers but `workflow`. */
  async #changeOwners(
    present: KubeObject,
    object: KubeObject,
    managers: Map<string, VersionedSet>,
    workflow: string,
    force: boolean,
  ): Promise<[Map<string, VersionedSet>, Comparison]> {
    const own = await this.#changes(present, object, this.#apiVersion);
    const changes = new Map([[this.#apiVersion, own]]);
    const touched = new Map<string, FieldSet>();
    const conflicts = new Map<string, FieldSet>();
    const after = new Map<string, VersionedSet>();
    for (const [manager, versioned] of managers) {
      if (manager === workflow) {
        if (!isEmptySet(versioned.set)) after.set(manager, versioned);
        continue;
      }
      const { apiVersion } = versioned;
      if (!changes.has(apiVersion)) {
        changes.set(apiVersion, await this.#changes(present, object, apiVersion));
      }
      const change = changes.get(apiVersion);
      if (change === undefined) continue;
      // One union for all managers of a version: each has the size of the whole change.
      let both = touched.get(apiVersion);
      if (both === undefined) {
        both = unionOf(change.modified, change.added);
        touched.set(apiVersion, both);
      }
      const lost = intersectionOf(versioned.set, both);
      if (!isEmptySet(lost)) conflicts.set(manager, lost);
      const set = differenceOf(differenceOf(versioned.set, lost), change.removed);
      if (!isEmptySet(set)) {
        after.set(manager, set === versioned.set ? versioned : { ...versioned, set });
      }
    }
    if (!force && conflicts.size > 0) throw conflictsOf(conflicts);
    return [after, defined(own, "the own set")];
  }

  async #changes(
    present: KubeObject,
    object: KubeObject,
    apiVersion: string,
  ): Promise<Comparison | undefined> {
    const old = await this.#in(present, apiVersion, "failed to convert old object: ");
    const now = await this.#in(object, apiVersion, "failed to convert new object: ");
    if (old === undefined || now === undefined) return undefined;
    const change = compareTyped(old.type, old.value, now.value);
    await this.#slices?.next();
    const reset = this.#versions.resetFields;
    if (reset === undefined) return change;
    return {
      added: recursiveDifferenceOf(change.added, reset),
      modified: recursiveDifferenceOf(change.modified, reset),
      removed: recursiveDifferenceOf(change.removed, reset),
    };
  }

  /** Removes what was applied the last time, is not now, and belongs to no other manager. */
  async #prune(
    merged: KubeObject,
    managers: Managers,
    last: VersionedSet | undefined,
  ): Promise<KubeObject> {
    if (last === undefined || isEmptySet(last.set)) return merged;
    const toLast = "object to last applied version: ";
    const failed = `${PRUNE}failed to convert merged ${toLast}`;
    const typed = await this.#in(merged, last.apiVersion, failed);
    if (typed === undefined) return merged;
    const { type } = typed;
    const lastNamed = withNamedFields(type, last.set);
    await this.#slices?.next();
    const removed = { ...typed, value: without(typed, lastNamed) };
    const owned = await this.#addBackOwned(typed, removed, managers);
    const dangling = `${PRUNE}failed add back dangling items: failed to convert pruned ${toLast}`;
    const inLast = await this.#in(owned, last.apiVersion, dangling);
    if (inLast === undefined) return merged;
    // What was removed with its parents, and belongs to updaters or to none, comes back.
    const pruned = withNamedFields(type, fieldSetOfValue(type, inLast.value));
    await this.#slices?.next();
    const all = withNamedFields(type, fieldSetOfValue(type, typed.value));
    await this.#slices?.next();
    const result = without(typed, intersectionOf(differenceOf(all, pruned), lastNamed));
    const back = await this.#in(result, this.#apiVersion, PRUNE);
    return back?.value ?? merged;
  }

  /** Puts back what managers own in any version. */
  async #addBackOwned(merged: Typed, removed: Typed, managers: Managers): Promise<KubeObject> {
    const owned = new Map<string, FieldSet>();
    for (const { apiVersion, set } of managers.values()) {
      owned.set(apiVersion, unionOf(owned.get(apiVersion) ?? EMPTY_SET, set));
    }
    // The version of the removal is first: other conversions may need those fields.
    const first = owned.get(merged.apiVersion);
    owned.delete(merged.apiVersion);
    const order = [...owned].sort(([a], [b]) => compareUtf8(a, b));
    if (first !== undefined) order.unshift([merged.apiVersion, first]);
    let pruned = removed.value;
    let all = merged.value;
    for (const [apiVersion, set] of order) {
      const failed = `${PRUNE}failed add back owned items: failed to convert`;
      const at = `object at version ${apiVersion}: `;
      const before = await this.#in(all, apiVersion, `${failed} merged ${at}`);
      const after = await this.#in(pruned, apiVersion, `${failed} pruned ${at}`);
      if (before === undefined || after === undefined) continue;
      const { type } = before;
      const had = withNamedFields(type, fieldSetOfValue(type, before.value));
      await this.#slices?.next();
      const has = withNamedFields(type, fieldSetOfValue(type, after.value));
      await this.#slices?.next();
      const gone = differenceOf(had, unionOf(has, withNamedFields(type, set)));
      all = before.value;
      pruned = without(before, gone);
    }
    return pruned;
  }
}

const PRUNE = "failed to prune fields: ";

function check(type: TypeAtom, value: KubeObject, what: string): void {
  try {
    validateTyped(type, value, false);
  } catch (error) {
    if (error instanceof TypedError) throw new TypedError(`${what}${error.message}`);
    throw error;
  }
}

/** An object keeps its kind and version even if all else goes. */
function without(typed: Typed, set: FieldSet): KubeObject {
  const rest = removeItems(typed.type, typed.value, set) as KubeObject | null;
  if (rest?.apiVersion !== undefined) return rest;
  return { ...rest, apiVersion: typed.apiVersion, kind: typed.value.kind } as KubeObject;
}

function conflictsOf(sets: ReadonlyMap<string, FieldSet>): ConflictsError {
  const managers = [...sets].sort(([a], [b]) => compareUtf8(a, b));
  return new ConflictsError(
    managers.flatMap(([manager, set]) => pathsOf(set).map((path) => ({ manager, path }))),
  );
}

/**
 * Brings field sets that were written under an older schema up to the present one
 * (structured-merge-diff: typed/reconcile_schema.go): where a list or map became atomic, who owned
 * something in it now owns it as a whole. Returns the same set if nothing changed.
 */
function reconcileFieldSet(type: TypeAtom, set: FieldSet): FieldSet {
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
