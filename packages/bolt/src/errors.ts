/** What can be wrong with a database file. */

/** The file holds bytes that bbolt does not write. */
export class BoltDamageError extends Error {
  readonly code = "Damaged";
  readonly path: string;
  /** Where in the file the broken page or record starts. */
  readonly offset: number;
  readonly reason: string;

  constructor(path: string, offset: number, reason: string) {
    super(`${path}: damaged at byte ${offset}: ${reason}`);
    this.name = "BoltDamageError";
    this.path = path;
    this.offset = offset;
    this.reason = reason;
  }
}

/** Throws if `condition` does not hold: a mistake of the caller, never of a file. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${message}`);
}
