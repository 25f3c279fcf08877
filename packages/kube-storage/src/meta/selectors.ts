/**
 * Selectors as predicates, and the selection of objects by them (apiserver:
 * pkg/storage/selection_predicate.go). label-selector.ts and field-selector.ts parse them.
 */
import type { KubeObject } from "./object.ts";

/** A parsed label or field selector. */
export interface Selector {
  /** Whether everything matches. */
  readonly isEmpty: boolean;
  /** The attributes that the selector looks at, each once; absent where that is unknown. */
  readonly attributes?: readonly string[];
  matches(attributes: Readonly<Record<string, string>>): boolean;
  /** The value that the attribute must have, if the selector demands exactly one. */
  exactValue(attribute: string): string | undefined;
  /** The canonical text. */
  toString(): string;
}

/** Matches everything. */
export const EVERYTHING: Selector = {
  isEmpty: true,
  attributes: [],
  matches: () => true,
  exactValue: () => undefined,
  toString: () => "",
};

/** Matches nothing. */
export const NOTHING: Selector = {
  isEmpty: false,
  attributes: [],
  matches: () => false,
  exactValue: () => undefined,
  toString: () => "",
};

/** What selectors look at in an object. */
export interface ObjectAttributes {
  readonly labels: Readonly<Record<string, string>>;
  /** The selectable fields, such as "metadata.name". */
  readonly fields: Readonly<Record<string, string>>;
  /** Only where shards may be selected (withUid). */
  readonly uid?: string;
}

/** A part of a collection; shards.ts has it. */
export interface Shard {
  matches(attributes: ObjectAttributes): boolean;
  /** The canonical text. */
  toString(): string;
}

/** Labels and selectable fields of an object. */
export type AttributesOf = (object: KubeObject) => ObjectAttributes;

/** Which objects of a list or watch match (storage.SelectionPredicate). */
export interface SelectionPredicate {
  readonly label: Selector;
  readonly field: Selector;
  /** Absent: objects of all shards match. */
  readonly shard?: Shard | undefined;
  /** Page size; 0 for all. */
  readonly limit: number;
  /** The token of the page before; "" for the first page. */
  readonly continueToken: string;
  readonly allowWatchBookmarks: boolean;
}

/** Selects all objects, without pages. */
export const SELECT_ALL: SelectionPredicate = {
  label: EVERYTHING,
  field: EVERYTHING,
  limit: 0,
  continueToken: "",
  allowWatchBookmarks: false,
};

/** Whether every object matches, so that none has to be looked at. */
export function selectsAll({ label, field, shard }: SelectionPredicate): boolean {
  return label.isEmpty && field.isEmpty && shard === undefined;
}

export function attributesMatch(
  { label, field, shard }: SelectionPredicate,
  attributes: ObjectAttributes,
): boolean {
  const { labels, fields } = attributes;
  if (!label.matches(labels) || !field.matches(fields)) return false;
  return shard === undefined || shard.matches(attributes);
}

export function objectMatches(
  predicate: SelectionPredicate,
  attributesOf: AttributesOf,
  object: KubeObject,
): boolean {
  return selectsAll(predicate) || attributesMatch(predicate, attributesOf(object));
}
