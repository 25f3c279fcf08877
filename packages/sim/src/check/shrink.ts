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
import { type ModelRange, matches } from "../base/model.ts";
import { changesKeys, type Operation } from "../base/operation.ts";
import { opsOf } from "./parts.ts";

/** Histories judged before shrinking ends with what it has. */
export const MAX_SHRINK_RUNS = 1500;
/**
 * Steps of the judge of all of them together: some seconds. A write whose answer is forgotten has
 * many places, so a part of a history can take a thousand times as long as the whole.
 */
export const MAX_SHRINK_STEPS = 2_000_000;
/** Steps of the judge for one history, after which that one counts as one that does not fail. */
const MAX_STEPS_OF_ONE = 20_000;

const FORGOTTEN = { kind: "unknown", error: "its answer does not matter here" } as const;

/** What came of one history. */
export interface Tried {
  /** It is wrong for sure. */
  readonly fails: boolean;
  /** The work that it was to judge it. */
  readonly steps: number;
}

/** Judges a history, and gives up soon after `maxSteps`. */
export type Judge = (operations: readonly Operation[], maxSteps: number) => Tried;

/** Bounds of all attempts together. */
export interface ShrinkLimits {
  /** MAX_SHRINK_RUNS if not given. */
  readonly maxRuns?: number;
  /** MAX_SHRINK_STEPS if not given. */
  readonly maxSteps?: number;
}

/** The smallest part found. */
export interface Shrunk {
  /** In the order of calls. */
  readonly operations: readonly Operation[];
  /** Shrinking ended at a bound: a smaller part may fail too. */
  readonly isBounded: boolean;
}

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

/** A small part of `operations` that still fails; all of them if they do not fail. */
export function shrinkHistory(
  operations: readonly Operation[],
  judge: Judge,
  { maxRuns = MAX_SHRINK_RUNS, maxSteps = MAX_SHRINK_STEPS }: ShrinkLimits = {},
): Shrunk {
  let runs = 0;
  let stepsLeft = maxSteps;
  let best = [...operations].sort((a, b) => a.calledAt - b.calledAt);
  const isSpent = () => runs >= maxRuns || stepsLeft <= 0;
  const attempt = (candidate: Operation[]): boolean => {
    if (isSpent()) return false;
    runs++;
    const { fails, steps } = judge(candidate, Math.min(MAX_STEPS_OF_ONE, stepsLeft));
    stepsLeft -= steps;
    if (fails) best = candidate;
    return fails;
  };
  if (!attempt(best)) return { operations: best, isBounded: isSpent() };

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
        if (chosen.length === 0 || isSpent()) break;
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
  return { operations: best, isBounded: isSpent() };
}
