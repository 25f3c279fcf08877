/**
 * What reads show of writes: where a value was written, and what was written at a revision. It
 * keeps the search for places short.
 */
import type { Answer, ModelRequest, ModelState } from "../base/model.ts";
import type { Operation } from "../base/operation.ts";
import { opsOf } from "./parts.ts";

/** The values that reads of a history have returned. */
export class ShownValues {
  /** Where a value was written, by key and value, if only one request writes it. */
  readonly #writtenAt = new Map<string, number>();
  /** What was written at a revision, by key. */
  readonly #shownAt = new Map<number, Map<string, string>>();

  /**
   * @param writers all requests that may have written
   * @param answered operations whose answers show values
   */
  constructor(writers: Iterable<Operation>, answered: Iterable<Operation>) {
    const { counts, rewritten } = countWriters(writers);
    for (const { outcome } of answered) {
      for (const one of (outcome as { answer: Answer }).answer.answers) {
        if (one.kind !== "range") continue;
        for (const { key, value, mod } of one.kvs) {
          // Of keys alone the values are not known.
          if (value === "") continue;
          const name = nameOf(key, value);
          if (counts.get(name) === 1 && !rewritten.has(key)) this.#writtenAt.set(name, mod);
          const shown = this.#shownAt.get(mod);
          if (shown === undefined) this.#shownAt.set(mod, new Map([[key, value]]));
          else shown.set(key, value);
        }
      }
    }
  }

  /** False if the value was written at another revision. */
  mayBeAt(key: string, value: string, at: number): boolean {
    return (this.#writtenAt.get(nameOf(key, value)) ?? at) === at;
  }

  /** Whether `next`, the state after a write at a revision, has what reads show of that one. */
  fits(at: number, next: ModelState): boolean {
    for (const [key, { mod, value }] of next.keys)
      if (mod === at && !this.mayBeAt(key, value, at)) return false;
    for (const [key, value] of this.#shownAt.get(at) ?? []) {
      const now = next.keys.get(key);
      if (now?.mod !== at || now.value !== value) return false;
    }
    return true;
  }
}

/**
 * How many requests put a value under a key, and the keys whose value may be written again as it
 * is.
 */
function countWriters(writers: Iterable<Operation>): {
  readonly counts: ReadonlyMap<string, number>;
  readonly rewritten: ReadonlySet<string>;
} {
  const counts = new Map<string, number>();
  const rewritten = new Set<string>();
  for (const { request } of writers) {
    for (const op of opsOf(request))
      if (op.kind === "put" && op.ignoreValue === true) rewritten.add(op.key);
    for (const one of new Set(putsOf(request))) counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  return { counts, rewritten };
}

/** The values that a request puts, if it comes to it, each with its key. */
function putsOf(request: ModelRequest): string[] {
  return opsOf(request).flatMap((op) => (op.kind === "put" ? [nameOf(op.key, op.value)] : []));
}

function nameOf(key: string, value: string): string {
  return `${key} ${value}`;
}
