/**
 * Checks of what a program passes. Types keep mistakes out of TypeScript, not out of JavaScript,
 * and a wrong value must not be stored as an empty one. Every check throws TypeError with the call,
 * the parameter, and what would be right.
 */
/** What a parameter must be: a test, and its name. */
export interface Kind {
  readonly name: string;
  is(value: unknown): boolean;
}

const kind = (name: string, is: (value: unknown) => boolean): Kind => ({ name, is });

export const BYTES: Kind = kind(
  "a string or a Uint8Array",
  (value) => typeof value === "string" || value instanceof Uint8Array,
);
export const TEXT: Kind = kind("a string", (value) => typeof value === "string");
export const FLAG: Kind = kind("true or false", (value) => typeof value === "boolean");
export const INTEGER: Kind = kind("an integer up to 2^53", Number.isSafeInteger);
/** Also without an end. */
export const BOUND: Kind = kind(
  "a number that is not negative",
  (value) => typeof value === "number" && value >= 0,
);
export const ID: Kind = kind(
  "a bigint, such as 0n",
  (value) => typeof value === "bigint" && BigInt.asIntN(64, value) === value,
);
/** Ids of members are unsigned. */
export const MEMBER_ID: Kind = kind(
  "a bigint from 0n to 2n ** 64n - 1n",
  (value) => typeof value === "bigint" && BigInt.asUintN(64, value) === value,
);
export const CALLBACK: Kind = kind("a function", (value) => typeof value === "function");
export const OBJECT: Kind = kind(
  "an object",
  (value) =>
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array),
);
export const TEXTS: Kind = kind(
  "an array of strings",
  (value) => Array.isArray(value) && value.every((one) => typeof one === "string"),
);

/** One of some texts. */
export function oneOf(values: readonly string[]): Kind {
  return kind(values.map((value) => JSON.stringify(value)).join(" or "), (value) =>
    values.includes(value as string),
  );
}

/** The options of a call: each by its name. */
export type Shape<T> = Readonly<Record<keyof T & string, Kind>>;

/** Throws TypeError for a value of another kind. @param call "put", @param name "value" */
export function check(call: string, name: string, value: unknown, what: Kind): void {
  if (!what.is(value))
    throw new TypeError(`${call}: ${name} must be ${what.name}, not ${shown(value)}`);
}

/**
 * Throws TypeError for options that are no object, for one that the call does not have, and for one
 * of another kind. An option that is undefined counts as absent.
 */
export function checkOptions<T>(call: string, options: T, shape: Shape<T>): void {
  check(call, "options", options, OBJECT);
  for (const name of Object.keys(options as object)) {
    const what = Object.hasOwn(shape, name) ? shape[name as keyof T & string] : undefined;
    if (what === undefined)
      throw new TypeError(
        `${call}: unknown option ${name}: there are ${Object.keys(shape).join(", ")}`,
      );
    const value = options[name as keyof T];
    if (value !== undefined) check(call, name, value, what);
  }
}

/** Characters of a value that an error shows. */
const SHOWN_LENGTH = 40;

function shown(value: unknown): string {
  if (value === undefined || value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "bigint") return `the bigint ${String(value).slice(0, SHOWN_LENGTH)}n`;
  if (typeof value === "string")
    return `the string ${JSON.stringify(value.slice(0, SHOWN_LENGTH))}`;
  if (typeof value !== "object") return `a ${typeof value}`;
  return Array.isArray(value) ? "an array" : `an object (${value.constructor?.name ?? "Object"})`;
}
