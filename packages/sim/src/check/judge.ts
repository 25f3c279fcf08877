/**
 * All judges of histories together, for records of any origin: the simulator's clients, or those of
 * real members. First the judge by revision, then the general one as a second opinion; what fails
 * is made small and drawn.
 */

import { type CompactionCall, type Operation, words } from "../base/operation.ts";
import { historyPicture } from "../report/picture.ts";
import { checkHistory } from "./by-revision.ts";
import { checkLinearizable } from "./linearizable.ts";
import type { Hint } from "./places.ts";
import { type Judge, type Shrunk, shrinkHistory } from "./shrink.ts";

/** What clients did and saw, in plain data: it can be written down as JSON. */
export interface RecordedHistory {
  readonly operations: readonly Operation[];
  readonly compactions?: readonly CompactionCall[];
}

/** Whether a history that fails is made small, and what is called before. */
export type Explains = boolean | ((violation: string) => void);

/** How to judge. */
export interface JudgeOptions {
  /** For the picture's head: where the history is from. */
  readonly title?: string;
  readonly hint?: Hint;
  /** Configurations entered by the general judge before it gives up. */
  readonly maxStates?: number;
  /**
   * Whether the general judge is asked too, which knows keys and values alone: no limits, orders,
   * comparisons over ranges or transactions within transactions. True if not given.
   */
  readonly searches?: boolean;
  /**
   * Makes what fails small and draws it, which takes far longer than to judge it; true if not
   * given. A function is called with what is wrong before that begins.
   */
  readonly explains?: Explains;
}

/** What the judges found. */
export interface Judgement {
  /** What is wrong, in words; undefined if nothing was found. */
  readonly violation: string | undefined;
  /**
   * Judges that gave up at their bounds. Without a violation, an empty list is a pass, and no other
   * is.
   */
  readonly undecided: readonly ("by revision" | "by search")[];
  readonly answered: number;
  readonly unknown: number;
  readonly lastRevision: number;
  /**
   * The smallest part found that fails, and its picture as an HTML page; undefined if all is well,
   * or if it was not requested.
   */
  readonly failing: readonly Operation[] | undefined;
  readonly picture: string | undefined;
  /** The search for the smallest part ended at its bound. */
  readonly isBounded: boolean;
}

/** States entered to find where the smallest part gets stuck. */
const MAX_EXPLAIN_STATES = 20_000;

const NOT_EXPLAINED = { failing: undefined, picture: undefined, isBounded: false } as const;

const bySearching: Judge = (some, maxSteps) => {
  const { result, states } = checkLinearizable(some, { maxStates: maxSteps });
  return { fails: result === "not-linearizable", steps: states };
};

/** Judges a history that has ended. */
export function judgeHistory(history: RecordedHistory, options: JudgeOptions = {}): Judgement {
  const { operations, compactions = [] } = history;
  const { hint, maxStates, title = "history", explains = true, searches = true } = options;
  const byRevision = checkHistory(operations, compactions, hint);
  const { answered, unknown, lastRevision, placed, leaseEnds } = byRevision;
  const bySearch = checkLinearizable(searches ? operations : [], {
    places: byRevision.decided ? placed : undefined,
    leaseEnds,
    maxStates,
  });
  const undecided: ("by revision" | "by search")[] = [];
  if (!byRevision.decided) undecided.push("by revision");
  if (bySearch.result === "undecided") undecided.push("by search");
  const counts = { undecided, answered, unknown, lastRevision };
  const isWrong = bySearch.result === "not-linearizable";
  if (byRevision.violation === undefined && !isWrong)
    return { violation: undefined, ...counts, ...NOT_EXPLAINED };

  const verdict = byRevision.violation ?? "not linearizable, whatever the revisions";
  if (explains === false) return { violation: verdict, ...counts, ...NOT_EXPLAINED };
  if (explains !== true) explains(verdict);

  const found: { shrunk: Shrunk; revisions: "ignored" | "compared" }[] = [];
  if (isWrong)
    found.push({ shrunk: shrinkHistory(bySearch.part, bySearching), revisions: "ignored" });
  if (byRevision.violation !== undefined) {
    const byComparing: Judge = (some, maxSteps) => {
      const { decided, violation, steps } = checkHistory(
        some,
        compactions,
        hint,
        undefined,
        maxSteps,
      );
      return { fails: decided && violation !== undefined, steps };
    };
    found.push({ shrunk: shrinkHistory(operations, byComparing), revisions: "compared" });
  }
  found.sort((a, b) => a.shrunk.operations.length - b.shrunk.operations.length);
  const [{ shrunk, revisions }] = found;
  const { operations: failing, isBounded } = shrunk;
  const explained = checkLinearizable(failing, { revisions, maxStates: MAX_EXPLAIN_STATES });
  const stuck = explained.stuck.map((op) => `\n  ${words(op)}`).join("");
  const violation =
    byRevision.violation ??
    `not linearizable, whatever the revisions: none of these can come next${stuck}`;
  const why =
    revisions === "ignored"
      ? violation
      : (checkHistory(failing, compactions, hint).violation ?? violation);
  const picture = historyPicture({
    title,
    why,
    operations: failing,
    prefix: explained.prefix,
    stuck: explained.stuck,
  });
  return { violation, ...counts, failing, picture, isBounded };
}

/** A history as text, one operation a line. */
export function formatHistory({ operations, compactions = [] }: RecordedHistory): string {
  const lines = [
    ...operations.map((op) => ["operation", op]),
    ...compactions.map((call) => ["compaction", call]),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** What `formatHistory` wrote. Throws an Error that names the line that is none. */
export function parseHistory(text: string): RecordedHistory {
  const operations: Operation[] = [];
  const compactions: CompactionCall[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (line === "") continue;
    let parsed: unknown;
    try {
      parsed = JSON.parse(line);
    } catch {
      throw new Error(
        `line ${i + 1} of the history is no JSON; a line is ["operation", {...}] or ["compaction", {...}]`,
      );
    }
    const [kind, what] = Array.isArray(parsed) ? parsed : [];
    const isTimed = typeof what === "object" && what !== null && typeof what.calledAt === "number";
    if (
      kind === "operation" &&
      isTimed &&
      typeof what.client === "string" &&
      typeof what.request === "object"
    ) {
      operations.push({
        ...what,
        serializable: what.serializable === true,
        atRevision: what.atRevision ?? 0,
      });
    } else if (kind === "compaction" && isTimed && typeof what.revision === "number")
      compactions.push(what);
    else
      throw new Error(
        `line ${i + 1} of the history is neither an operation (client, request, calledAt) nor a compaction (revision)`,
      );
  }
  return { operations, compactions };
}
