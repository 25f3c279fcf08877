/**
 * Judges what clients saw: is there one order of all operations that agrees with real time and
 * returns every answer?
 *
 * Revisions decide most of it. A write that was answered has its place, the revision in its answer;
 * a read stands behind the write of its revision. What is left to search for (in the manner of Wing
 * and Gong, with Lowe's memory of configurations) are the places of writes whose outcome is
 * unknown: revisions that no answered write has must be theirs, each at most once, and every read
 * must come out right.
 *
 *   HIST-1 real time       an answer's revision is not below one that was answered before the call;
 *                          a write's is above it
 *   HIST-2 one write each  no two writes have one revision, each revision has a write
 *   HIST-3 answers         each answer is what the model returns at that place
 *   HIST-4 compaction      what was compacted is not read again
 */
import type { Answer } from "../base/model.ts";
import { type CompactionCall, changesKeys, type Operation, words } from "../base/operation.ts";
import { type Fits, type Hint, type Parts, place } from "./places.ts";

/** What the judge found. */
export interface Verdict {
  /** The first thing that is wrong, with the operations around it; undefined if all is well. */
  readonly violation: string | undefined;
  /**
   * False if the search gave up at its bound: no violation was found, and not every order was
   * tried.
   */
  readonly decided: boolean;
  readonly answered: number;
  readonly unknown: number;
  readonly lastRevision: number;
  /** Requests applied to the model, as a measure of the work. */
  readonly steps: number;
  /** Where writes of unknown outcome can stand, if all is well. */
  readonly placed: ReadonlyMap<Operation, number>;
  /** The revisions at which leases ended, as far as the hints show, if all is well. */
  readonly leaseEnds: ReadonlyMap<string, number>;
}

/**
 * Judges a history that has ended. `fits` says what watchers, say, have seen of revisions whose
 * write no client received an answer for.
 * @param maxSteps requests applied to the model before it gives up: undecided
 */
export function checkHistory(
  operations: readonly Operation[],
  compactions: readonly CompactionCall[] = [],
  hint: Hint = () => undefined,
  fits: Fits = () => true,
  maxSteps: number = Number.POSITIVE_INFINITY,
): Verdict {
  let decided = true;
  let steps = 0;
  let violation: string | undefined;
  let placed: ReadonlyMap<Operation, number> = new Map();
  let leaseEnds: ReadonlyMap<string, number> = new Map();
  const parts: Parts = {
    writes: new Map(),
    reads: new Map(),
    unknown: [],
    floors: new Map(),
    last: 1,
  };
  const answered = operations.filter((op) => op.outcome?.kind === "answered");
  let last = 1;
  for (const op of answered)
    last = Math.max(last, (op.outcome as { answer: Answer }).answer.revision);
  violation = realTime(operations, parts) ?? compacted(operations, compactions);
  if (violation === undefined) {
    const found = place({ ...parts, last }, hint, fits, maxSteps);
    violation = found.violation;
    ({ decided, placed, leaseEnds, steps } = found);
  }
  const counts = { answered: answered.length, unknown: parts.unknown.length, lastRevision: last };
  return { violation, decided, ...counts, steps, placed, leaseEnds };
}

/** HIST-1, and sorts the operations by their revisions. */
function realTime(operations: readonly Operation[], parts: Parts): string | undefined {
  const moments: { at: number; op: Operation; call: boolean }[] = [];
  for (const op of operations) {
    moments.push({ at: op.calledAt, op, call: true });
    if (op.returnedAt !== undefined && op.outcome?.kind === "answered")
      moments.push({ at: op.returnedAt, op, call: false });
  }
  // What is called at the moment of a return was called at the same time, as far as anyone knows.
  moments.sort((a, b) => a.at - b.at || Number(b.call) - Number(a.call));
  let highest = 1;
  let highestOp: Operation | undefined;
  for (const { op, call } of moments) {
    if (call) {
      parts.floors.set(op, highest);
      if (
        op.outcome?.kind !== "answered" &&
        op.outcome?.kind !== "refused" &&
        op.request.kind !== "range"
      )
        parts.unknown.push(op);
      continue;
    }
    const { answer } = op.outcome as { answer: Answer };
    const floor = parts.floors.get(op)!;
    const isWrite = changesKeys(op.request, answer);
    if (!op.serializable && (isWrite ? answer.revision <= floor : answer.revision < floor)) {
      const since = highestOp === undefined ? "none" : words(highestOp);
      return `HIST-1: revision ${floor} had been answered before this was called:\n  ${words(op)}\n  highest since:\n  ${since}`;
    }
    if (isWrite) {
      const other = parts.writes.get(answer.revision);
      if (other !== undefined)
        return `HIST-2: two writes of revision ${answer.revision}:\n  ${words(other)}\n  ${words(op)}`;
      parts.writes.set(answer.revision, op);
    } else {
      const at = op.atRevision > 0 ? op.atRevision : answer.revision;
      const there = parts.reads.get(at);
      if (there === undefined) parts.reads.set(at, [op]);
      else there.push(op);
    }
    if (answer.revision > highest) {
      highest = answer.revision;
      highestOp = op;
    }
  }
  return undefined;
}

/** HIST-4. */
function compacted(
  operations: readonly Operation[],
  compactions: readonly CompactionCall[],
): string | undefined {
  for (const op of operations) {
    if (op.atRevision === 0) continue;
    if (op.outcome?.kind === "answered" && !op.serializable) {
      const gone = compactions.find(
        (one) =>
          one.answeredAt !== undefined &&
          one.answeredAt < op.calledAt &&
          one.revision > op.atRevision,
      );
      if (gone !== undefined)
        return `HIST-4: compacted at ${gone.revision} before, and yet read:\n  ${words(op)}`;
    }
    if (
      op.outcome?.kind === "refused" &&
      op.outcome.error.includes("compacted") &&
      op.returnedAt !== undefined
    ) {
      const { returnedAt, atRevision } = op;
      const cause = compactions.some(
        (one) => one.calledAt < returnedAt && one.revision > atRevision,
      );
      if (!cause) return `HIST-4: no client compacted that:\n  ${words(op)}`;
    }
  }
  return undefined;
}
