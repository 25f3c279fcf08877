/** What can be wrong with a store, and the assertions that keep it right. */

/**
 * The store's files do not hold what they must. The member stops; nothing is repaired on a guess.
 */
export class StoreDamageError extends Error {
  readonly code = "DAMAGED";
  /** The folder of the store. */
  readonly path: string;
  /** Where in it: a bucket and a key in hexadecimal, or a byte offset of a stream. */
  readonly place: string;
  readonly problem: string;
  constructor(path: string, place: string, problem: string) {
    super(
      `${path}: ${place}: ${problem}. The member stops rather than serve wrong data: ` +
        `remove it from the cluster, move ${path} away, and add it again, or restore a backup`,
    );
    this.name = "StoreDamageError";
    this.path = path;
    this.place = place;
    this.problem = problem;
  }
}

/** An invariant of the store is broken: a defect of the program, on which the member stops. */
export class StoreInvariantError extends Error {
  readonly code = "INVARIANT";
  constructor(name: string, detail: string) {
    super(`${name}: ${detail}`);
    this.name = "StoreInvariantError";
  }
}

/**
 * Throws StoreInvariantError unless `condition` holds. `name` is the invariant's number, such as
 * "STORE-1".
 */
export function assert(condition: boolean, name: string, detail: string): asserts condition {
  if (!condition) throw new StoreInvariantError(name, detail);
}
