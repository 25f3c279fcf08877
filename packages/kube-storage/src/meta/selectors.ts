/**
 * Selectors as predicates. Their parsers are in label-selector.ts and field-selector.ts.
 */

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
}
