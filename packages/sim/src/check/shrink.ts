/**
 * Makes a history that fails small. Every step keeps what is right right: were the whole
 * linearizable, so would be what is left of it.
 *
 *   - what was called late is cut off, and what returned late is of unknown outcome then (as if the
 *     record ended there)
 *   - who changed nothing is left out
 *   - a write's answer is forgotten: it is of unknown outcome then
 *
 * At last writes of unknown outcome are left out that could explain nothing of what is left: no
 * operation looks at their keys, or not before they were called, or everybody saw other values
 * there.
 */
import { type ModelRange, matches } from "../model.ts";
import { changesKeys, type Operation } from "./operation.ts";
import { opsOf } from "./parts.ts";

/** Histories judged before shrinking ends with what it has. */
export const MAX_SHRINK_RUNS = 1500;

const FORGOTTEN = { kind: "unknown", error: "its answer does not matter here" } as const;

/** True if a history is wrong for sure. */
export type Fails = (operations: readonly Operation[]) => boolean;

function isRead({ request, outcome }: Operation): boolean {
  return outcome?.kind === "answered"
    ? !changesKeys(request, outcome.answer)
    : outcome?.kind === "refused" || request.kind === "range";
}

/** The record as it would be if it had ended at `end`. */
function cut(operations: readonly Operation[], end: number): Operation[] {
  return operations
    .filter(({ calledAt }) => calledAt <= end)
    .map((op) =>
      op.returnedAt !== undefined && op.returnedAt > end
        ? { ...op, returnedAt: undefined, outcome: undefined }
        : op,
    );
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
      outcome.answer.answers.some(
        (one) =>
          one.kind === "range" && one.kvs.some(({ key, value }) => puts.has(`${key} ${value}`)),
      ),
  );
}

/** Writes of unknown outcome that could not make any answer right. */
function explainsNothing(operations: readonly Operation[]): (op: Operation) => boolean {
  const answered = operations.filter(({ outcome }) => outcome?.kind === "answered");
  const lastReturn = Math.max(
    ...answered.map(({ returnedAt }) => returnedAt ?? Number.POSITIVE_INFINITY),
  );
  const looks: ModelRange[] = [];
  // Where it makes a difference that there is a key, whatever its value.
  const conditions: ModelRange[] = [];
  for (const { request, outcome } of operations) {
    if (request.kind === "txn")
      conditions.push(...request.compares.map(({ key }) => ({ key, end: "" })));
    if (outcome?.kind !== "answered") continue;
    for (const op of opsOf(request)) {
      if (op.kind === "range") looks.push(op);
      if (op.kind === "delete") conditions.push(op);
    }
  }
  const touches = (ranges: readonly ModelRange[], op: Operation) =>
    opsOf(op.request).some((one) =>
      one.kind === "delete" && one.end !== ""
        ? ranges.length > 0
        : ranges.some((range) => matches(range, one.key)),
    );
  return (op) => {
    if (op.outcome?.kind === "answered" || op.request.kind === "revoke") return false;
    if (op.calledAt > lastReturn || !(touches(looks, op) || touches(conditions, op))) return true;
    return op.request.kind === "put" && !isSeen(op, operations) && !touches(conditions, op);
  };
}

/**
 * A small part of `operations` that still fails, in the order of calls; all of them if they do not
 * fail.
 */
export function shrinkHistory(
  operations: readonly Operation[],
  fails: Fails,
  maxRuns: number = MAX_SHRINK_RUNS,
): Operation[] {
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

  const moments = best.flatMap(({ calledAt, returnedAt }) =>
    returnedAt === undefined ? [calledAt] : [calledAt, returnedAt],
  );
  moments.sort((a, b) => a - b);
  const whole = best;
  let low = 0;
  let high = moments.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (attempt(cut(whole, moments[middle]))) high = middle;
    else low = middle + 1;
  }

  /**
   * Changes those that `applies` is true of, many at once first and then fewer, as long as it goes
   * on failing.
   */
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
  const isOfNoUse = explainsNothing(best);
  reduce(isOfNoUse, () => []);
  return best;
}
