/**
 * All judges of histories together, for records of any origin: the simulator's clients, or those of
 * real members. First the judge by revision, then the general one as a second opinion; what fails
 * is made small and drawn.
 */
import { historyPicture } from "../report/picture.ts";
import { checkHistory } from "./by-revision.ts";
import { checkLinearizable } from "./linearizable.ts";
import { type CompactionCall, type Operation, words } from "./operation.ts";
import type { Hint } from "./places.ts";
import { shrinkHistory } from "./shrink.ts";

/** What clients did and saw, in plain data: it can be written down as JSON. */
export interface RecordedHistory {
  readonly operations: readonly Operation[];
  readonly compactions?: readonly CompactionCall[];
}

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
   * given.
   */
  readonly explains?: boolean;
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
}

/** States entered for each history that is tried on the way to a small one. */
const MAX_SHRINK_STATES = 20_000;

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
    return { violation: undefined, ...counts, failing: undefined, picture: undefined };

  if (!explains) {
    const words = byRevision.violation ?? "not linearizable, whatever the revisions";
    return { violation: words, ...counts, failing: undefined, picture: undefined };
  }

  const found: { failing: Operation[]; revisions: "ignored" | "compared" }[] = [];
  if (isWrong) {
    const fails = (some: readonly Operation[]) =>
      checkLinearizable(some, { maxStates: MAX_SHRINK_STATES }).result === "not-linearizable";
    found.push({ failing: shrinkHistory(bySearch.part, fails), revisions: "ignored" });
  }
  if (byRevision.violation !== undefined) {
    const fails = (some: readonly Operation[]) => {
      const verdict = checkHistory(some, compactions, hint);
      return verdict.decided && verdict.violation !== undefined;
    };
    found.push({ failing: shrinkHistory(operations, fails), revisions: "compared" });
  }
  found.sort((a, b) => a.failing.length - b.failing.length);
  const [{ failing, revisions }] = found;
  const explained = checkLinearizable(failing, { revisions, maxStates: MAX_SHRINK_STATES });
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
  return { violation, ...counts, failing, picture };
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
