/**
 * The present objects of a resource: sorted by key, and by the values of indexed fields (apiserver:
 * pkg/storage/cacher/store).
 */
import type { KubeObject } from "../meta/object.ts";
import type { AttributesOf, ObjectAttributes } from "../meta/selectors.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { SortedTree, type SortedView } from "./sorted-tree.ts";

/** An object with what selectors look at. */
export interface Element {
  readonly key: string;
  readonly stored: StoredObject;
  readonly attributes: ObjectAttributes;
}

const NO_LABELS: Readonly<Record<string, string>> = Object.freeze({});

/** Labels are copied: a stored object may drop its parsed form, and they are part of that. */
export function elementOf(stored: StoredObject, attributesOf: AttributesOf): Element {
  const object: KubeObject = stored.object();
  const attributes = attributesOf(object);
  const { labels } = attributes;
  const own = Object.keys(labels).length === 0 ? NO_LABELS : { ...labels };
  return { key: stored.key, stored, attributes: { ...attributes, labels: own } };
}

/** Elements by the value of one field. */
type ValueIndex = Map<string, Map<string, Element>>;

export class ObjectSet {
  readonly #tree = new SortedTree<Element>();
  readonly #indexes = new Map<string, ValueIndex>();

  /** @param indexFields selectable fields whose exact values are looked up often */
  constructor(indexFields: readonly string[]) {
    for (const field of indexFields) this.#indexes.set(field, new Map());
  }

  get size(): number {
    return this.#tree.size;
  }

  get(key: string): Element | undefined {
    return this.#tree.get(key);
  }

  /** Adds or replaces; returns what was there. */
  set(element: Element): Element | undefined {
    const previous = this.#tree.set(element);
    for (const [field, index] of this.#indexes) {
      if (previous !== undefined) removeFrom(index, field, previous);
      addTo(index, field, element);
    }
    return previous;
  }

  delete(key: string): Element | undefined {
    const previous = this.#tree.delete(key);
    if (previous !== undefined)
      for (const [field, index] of this.#indexes) removeFrom(index, field, previous);
    return previous;
  }

  /** The present objects, which later changes do not touch. */
  freeze(): SortedView<Element> {
    return this.#tree.freeze();
  }

  /** Objects with this value of an indexed field, sorted by key. */
  byValue(field: string, value: string): readonly Element[] {
    const found = this.#indexes.get(field)?.get(value);
    if (found === undefined) return [];
    return [...found.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }
}

function addTo(index: ValueIndex, field: string, element: Element): void {
  const value = element.attributes.fields[field] ?? "";
  const elements = index.get(value);
  if (elements === undefined) index.set(value, new Map([[element.key, element]]));
  else elements.set(element.key, element);
}

function removeFrom(index: ValueIndex, field: string, element: Element): void {
  const value = element.attributes.fields[field] ?? "";
  const elements = index.get(value);
  elements?.delete(element.key);
  if (elements?.size === 0) index.delete(value);
}
