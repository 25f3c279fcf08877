/**
 * Assertions, always on. Each package that asserts has one list of numbered invariants
 * (src/invariants.ts) and binds these functions to it:
 *
 *     export const invariants = { "WAL-1": "one sync at a time" } as const satisfies InvariantList;
 *     export const assert: Assert<keyof typeof invariants> = assertOf(invariants);
 *
 *     assert(this.#syncing === undefined, "WAL-1");
 *
 * The annotation is needed: TypeScript narrows only through an assertion whose type is declared. A
 * broken invariant is a defect of the program; the member stops.
 */
import { CodedError } from "./wire/coded-error.ts";

/**
 * What always holds, by number: "RAFT-1" and so on. A number is never used again for another
 * invariant.
 */
export type InvariantList = Readonly<Record<`${Uppercase<string>}-${number}`, string>>;

/** A broken invariant: `code` is its number, and the message starts with it. */
export class InvariantError<Number extends string = string> extends CodedError<Number> {
  constructor(number: Number, text: string, detail: string) {
    super("InvariantError", number, `${number}: ${text}${detail === "" ? "" : ` (${detail})`}`);
  }
}

/** Throws the InvariantError of `number` unless `condition` holds. */
export type Assert<Number extends string> = (
  condition: boolean,
  number: Number,
  detail?: string,
) => asserts condition;

/**
 * Throws the InvariantError of `number`: for callers that test first, so that `detail` costs
 * nothing while all is well.
 */
export type Violated<Number extends string> = (number: Number, detail?: string) => never;

/** The assertion over one list of invariants. */
export function assertOf<Number extends string>(
  list: Readonly<Record<Number, string>>,
): Assert<Number> {
  return (condition, number, detail = "") => {
    if (!condition) throw new InvariantError(number, list[number], detail);
  };
}

/** The unconditional form of assertOf. */
export function violatedOf<Number extends string>(
  list: Readonly<Record<Number, string>>,
): Violated<Number> {
  return (number, detail = "") => {
    throw new InvariantError(number, list[number], detail);
  };
}

/**
 * The value, where the caller knows that there is one and the type does not say so. Throws
 * TypeError where there is none, before an undefined value gets further.
 * @param what the missing thing, as the message names it
 */
export function defined<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new TypeError(`${what} is missing`);
  return value;
}
