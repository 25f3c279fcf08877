/**
 * Selectors as predicates. Their parsers, parseLabelSelector and parseFieldSelector, are in
 * selector-parser.ts.
 */

/** A parsed label or field selector. */
export interface Selector {
  /** Whether everything matches. */
  readonly isEmpty: boolean;
  matches(attributes: Readonly<Record<string, string>>): boolean;
  /** The value that the attribute must have, if the selector demands exactly one. */
  exactValue(attribute: string): string | undefined;
  /** The canonical text. */
  toString(): string;
}

/** Matches everything. */
export const EVERYTHING: Selector = {
  isEmpty: true,
  matches: () => true,
  exactValue: () => undefined,
  toString: () => "",
};

/** What selectors look at in an object. */
export interface ObjectAttributes {
  readonly labels: Readonly<Record<string, string>>;
  /** The selectable fields, such as "metadata.name". */
  readonly fields: Readonly<Record<string, string>>;
}
