/**
 * Makes a history that fails small. Every step keeps what is right right: were the whole linearizable, so would be what is left of it.
 *
 *   - what was called late is cut off, and what returned late is of unknown outcome then (as if the record ended there)
 *   - who changed nothing is left out
 *   - a write's answer is forgotten: it is of unknown outcome then
 *
 * At last writes of unknown outcome whose values nobody sees are left out, for they only stand in the way of a reader.
 */
import { changesKeys, type Operation } from "./operation.ts";
import { opsOf } from "./parts.ts";

/** Histories judged before shrinking ends with what it has. */
export const MAX_SHRINK_RUNS = 1500;

const FORGOTTEN = { kind: "unknown", error: "its answer does not matter here" } as const;

/** True if a history is wrong for sure. */
export type Fails = (operations: readonly Operation[]) => boolean;

function isRead({ request, outcome }: Operation): boolean {
  return outcome?.kind === "answered" ? !changesKeys(request, outcome.answer) : outcome?.kind === "refused" || request.kind === "range";
}

/** The record as it would be if it had ended at `end`. */
function cut(operations: readonly Operation[], end: number): Operation[] {
  return operations
    .filter(({ calledAt }) => calledAt <= end)
    .map((op) => (op.returnedAt !== undefined && op.returnedAt > end ? { ...op, returnedAt: undefined, outcome: undefined } : op));
}

/** Values put by a request, in case it takes effect, each with its key. */
function putsOf({ request }: Operation): string[] {
  return opsOf(request).flatMap((op) => (op.kind === "put" ? [`${op.key} ${op.value}`] : []));
}

function isSeen(op: Operation, operations: readonly Operation[]): boolean {
  const puts = new Set(putsOf(op));
  return operations.some(
    ({ outcome }) =>
      outcome?.kind === "answered" &&
      outcome.answer.answers.some((one) => one.kind === "range" && one.kvs.some(({ key, value }) => puts.has(`${key} ${value}`))),
  );
}

/** A small part of `operations` that still fails, in the order of calls; all of them if they do not fail. */
export function shrinkHistory(operations: readonly Operation[], fails: Fails, maxRuns: number = MAX_SHRINK_RUNS): Operation[] {
  let runs = 0;
  let best = [...operations].sort((a, b) => a.calledAt - b.calledAt);
  const attempt = (candidate: Operation[]): boolean => {
    if (runs >= maxRuns) return false;
    runs++;
    if (!fails(candidate)) return false;
    best = candidate;
    return true;
  };
  if (!attempt(best)) return best;

  const moments = best.flatMap(({ calledAt, returnedAt }) => (returnedAt === undefined ? [calledAt] : [calledAt, returnedAt]));
  moments.sort((a, b) => a - b);
  const whole = best;
  let low = 0;
  let high = moments.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (attempt(cut(whole, moments[middle]))) high = middle;
    else low = middle + 1;
  }

  /** Changes those that `applies` is true of, many at once first and then fewer, as long as it goes on failing. */
  const reduce = (applies: (op: Operation) => boolean, change: (op: Operation) => Operation[]) => {
    for (let size = best.length; size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      let from = 0;
      for (;;) {
        const chosen = best.filter(applies).slice(from, from + size);
        if (chosen.length === 0 || runs >= maxRuns) break;
        const set = new Set(chosen);
        if (!attempt(best.flatMap((op) => (set.has(op) ? change(op) : [op])))) from += size;
      }
    }
  };
  const forget = (op: Operation): Operation[] => [{ ...op, outcome: FORGOTTEN }];
  reduce(isRead, () => []);
  reduce((op) => op.outcome?.kind === "answered" && !isRead(op), forget);
  reduce(isRead, () => []);
  reduce(
    (op) => op.outcome?.kind !== "answered" && !isSeen(op, best),
    () => [],
  );
  return best;
}
