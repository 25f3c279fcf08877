/**
 * The history of a cluster that went back to an older state of its keys: a lost quorum goes on with
 * the data of a survivor, a restore with those of a backup. What was acknowledged past that state
 * is lost, and everything up to it must still hold:
 *
 *     before  |== up to the kept revision ==|~~ acknowledged, and lost ~~|
 *     after                                 |== goes on from there =====>
 *
 * So two histories are judged: what was before the cut, whole; and what was kept with what came
 * after, as one. A restore raises the revision; what it added is taken off again.
 */
import { changesKeys } from "@quorate/sim";
import { moveAnswer, moveRequest } from "../../../../test/robustness/judge.ts";
import type { Line, OpLine } from "../../../../test/robustness/recorder.ts";

/** Where a history goes back. */
export interface Cut {
  /** What was called later found the older state; microseconds of the recorder. */
  readonly atUs: number;
  /** The last revision that was kept. */
  readonly revision: number;
  /** What was added to the revision; more than any revision before. */
  readonly bump: number;
}

/** Everything that was called before the cut. */
export const beforeCut = (lines: readonly Line[], { atUs }: Cut): Line[] =>
  lines.filter((line) => !("calledAt" in line) || line.calledAt < atUs);

/** What was kept, with what came after; and how many acknowledged writes are not in it. */
export function acrossCut(
  lines: readonly Line[],
  cut: Cut,
): { readonly lines: Line[]; readonly lost: number } {
  const { atUs, revision, bump } = cut;
  const move = (one: number): number => (bump > 0 && one > bump ? one - bump : one);
  let lost = 0;
  // A restore compacts what was before it.
  const compaction: Line = { t: "compaction", revision, calledAt: atUs, answeredAt: undefined };
  const kept: Line[] = lines.flatMap((line): Line[] => {
    if (line.t === "compaction") {
      // One that was acknowledged before the cut may be lost as well.
      const answeredAt = line.calledAt < atUs ? undefined : line.answeredAt;
      return [{ ...line, revision: move(line.revision), answeredAt }];
    }
    if (line.t !== "op") return [line];
    if (line.calledAt >= atUs) return [moved(line, move)];
    if (line.outcome.kind !== "answered" || line.outcome.answer.revision <= revision) return [line];
    if (changesKeys(line.request, line.outcome.answer)) lost++;
    return [];
  });
  return { lines: bump > 0 ? [...kept, compaction] : kept, lost };
}

function moved(line: OpLine, move: (revision: number) => number): OpLine {
  const { request, outcome, atRevision } = line;
  return {
    ...line,
    request: moveRequest(request, move),
    atRevision: move(atRevision),
    outcome:
      outcome.kind === "answered"
        ? { kind: "answered", answer: moveAnswer(outcome.answer, move) }
        : outcome,
  };
}
