/** Selection by labels and fields (apiserver: pkg/storage/selection_predicate.go). */
import type { KubeObject } from "../meta/object.ts";
import { EVERYTHING, type ObjectAttributes } from "../meta/selectors.ts";
import type { AttributesOf, SelectionPredicate } from "./interface.ts";

/** Selects all objects, without pages. */
export const SELECT_ALL: SelectionPredicate = {
  label: EVERYTHING,
  field: EVERYTHING,
  limit: 0,
  continueToken: "",
  allowWatchBookmarks: false,
};

/** Whether every object matches, so that none has to be looked at. */
export function selectsAll({ label, field }: SelectionPredicate): boolean {
  return label.isEmpty && field.isEmpty;
}

export function attributesMatch(
  { label, field }: SelectionPredicate,
  { labels, fields }: ObjectAttributes,
): boolean {
  return label.matches(labels) && field.matches(fields);
}

export function objectMatches(
  predicate: SelectionPredicate,
  attributesOf: AttributesOf,
  object: KubeObject,
): boolean {
  return selectsAll(predicate) || attributesMatch(predicate, attributesOf(object));
}
