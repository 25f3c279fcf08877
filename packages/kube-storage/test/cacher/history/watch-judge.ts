/** Whether a watch has sent what its history demands: all events, in order, once. */
import type { History, Interest, Seen } from "../support/history.ts";

/** What a watch was asked for. */
export interface WatchDemand {
  readonly interest: Interest;
  /** The revision after which events follow; undefined: it begins with the present objects. */
  readonly after: number | undefined;
  /** The least revision of the initial objects. */
  readonly atLeast: number;
  /** A bookmark ends the initial objects. */
  readonly endsInitial: boolean;
}

export interface Judgement {
  /** What is wrong; undefined for nothing. */
  readonly problem: string | undefined;
  /** Up to here the client knows everything. */
  readonly position: number;
  /** Nothing is left to be sent. */
  readonly isComplete: boolean;
}

const nameOf = ({ type, key, revision }: Seen) => `${type} ${key}@${revision}`;

function isSame(a: Seen, b: Seen): boolean {
  return a.type === b.type && a.key === b.key && a.revision === b.revision && a.text === b.text;
}

/** Judges events that follow a revision. */
function judgeEvents(
  history: History,
  interest: Interest,
  after: number,
  seen: readonly Seen[],
): Judgement {
  const expected = history.eventsAfter(after, interest);
  let next = 0;
  let position = after;
  const wrong = (problem: string): Judgement => ({ problem, position, isComplete: false });
  for (const one of seen) {
    const wanted = expected[next];
    if (one.type === "BOOKMARK") {
      if (one.revision < position)
        return wrong(`bookmark ${one.revision} after ${position} was reached`);
      if (wanted !== undefined && wanted.revision <= one.revision)
        return wrong(`bookmark ${one.revision} before ${nameOf(wanted)}`);
      if (one.revision > history.revision) return wrong(`bookmark ${one.revision} of the future`);
    } else if (wanted === undefined) {
      return wrong(`${nameOf(one)} when nothing is left`);
    } else if (!isSame(one, wanted)) {
      return wrong(`${nameOf(one)} ${one.text} instead of ${nameOf(wanted)} ${wanted.text}`);
    } else {
      next++;
    }
    position = one.revision;
  }
  return { problem: undefined, position, isComplete: next === expected.length };
}

function isPrefix(part: readonly Seen[], whole: readonly Seen[]): boolean {
  return part.length <= whole.length && part.every((one, i) => isSame(one, whole[i]));
}

/** A watch that begins with objects whose revision it does not say. */
function judgeUnmarked(history: History, demand: WatchDemand, seen: readonly Seen[]): Judgement {
  let best: Judgement | undefined;
  for (let revision = demand.atLeast; revision <= history.revision; revision++) {
    const state = history.stateAt(revision, demand.interest);
    if (!isPrefix(seen.slice(0, state.length), state)) continue;
    if (seen.length < state.length) {
      best ??= { problem: undefined, position: 0, isComplete: false };
      continue;
    }
    const judged = judgeEvents(history, demand.interest, revision, seen.slice(state.length));
    // Several revisions may explain a watch that has sent little.
    if (judged.problem === undefined && (best === undefined || judged.isComplete)) best = judged;
  }
  const problem = `no revision explains ${seen.map(nameOf).join(", ")}`;
  return best ?? { problem, position: 0, isComplete: false };
}

/** @param initialEnds of each bookmark, whether it ends the initial objects */
export function judgeWatch(
  history: History,
  demand: WatchDemand,
  seen: readonly Seen[],
  initialEnds: readonly boolean[],
): Judgement {
  const { interest, after, atLeast, endsInitial } = demand;
  if (after !== undefined) {
    const wrong = initialEnds.includes(true);
    const judged = judgeEvents(history, interest, after, seen);
    return wrong
      ? { ...judged, problem: "an end of initial objects that were not demanded" }
      : judged;
  }
  if (!endsInitial) return judgeUnmarked(history, demand, seen);
  const end = seen.findIndex(({ type }) => type === "BOOKMARK");
  if (end < 0) return judgeUnmarked(history, demand, seen);
  const { revision } = seen[end];
  const wrong = (problem: string): Judgement => ({ problem, position: 0, isComplete: false });
  if (!initialEnds[0] || initialEnds.indexOf(true, 1) > 0)
    return wrong("the first bookmark, and only it, ends the initial objects");
  if (revision < atLeast) return wrong(`initial objects at ${revision}, before ${atLeast}`);
  const state = history.stateAt(revision, interest);
  const initial = seen.slice(0, end);
  if (initial.length !== state.length || !isPrefix(initial, state))
    return wrong(`initial objects at ${revision}: ${initial.map(nameOf).join(", ")}`);
  return judgeEvents(history, interest, revision, seen.slice(end + 1));
}
