/**
 * Sees to it that every entry which a member applies is looked at, whichever store it has at the
 * time.
 */

import type { Member } from "@quorate/member";
import { AlarmType, type raftpb } from "@quorate/proto";
import { type AppliedEntry, isSteps, type Steps, type Store } from "@quorate/store";
import type { HashCheck } from "./check/hashes.ts";
import { RefusedEntries } from "./check/refused.ts";
import { type Safety, violate } from "./check/safety.ts";
import type { Story } from "./report/story.ts";

/** Whose member it is. */
export interface Applier {
  readonly name: string;
  /** Its store differs, or may differ, from what it should be. */
  readonly isAltered: boolean;
  /** How often its store was made to differ. */
  readonly timesAltered: number;
}

export interface ApplyWatchDeps {
  readonly safety: Safety;
  readonly hashCheck: HashCheck;
  readonly story: Story;
  readonly maxLearners: number;
  /**
   * Runs a check; what it throws is reported to the simulator, as a member would only end by it.
   */
  look(check: () => void): void;
  fail(error: unknown): void;
  /** Called after each entry with whether an alarm CORRUPT names the member. */
  named(isNamed: boolean): void;
}

/** Looks at the member's present store, and at every entry that is applied to it from now on. */
export function watchStore(applier: Applier, member: Member, deps: ApplyWatchDeps): void {
  const { store } = member;
  const { safety, hashCheck, story, maxLearners, look } = deps;
  const { name } = applier;
  look(() => {
    safety.opened(name, store, applier.isAltered);
    safety.etcd?.opened(name, store);
  });
  deps.named(isNamed(member.id, store));
  const refused = new RefusedEntries(name, store, safety);
  const wasApplied = (
    entry: raftpb.Entry,
    applied: AppliedEntry | undefined,
    { isAltered, timesAltered }: Before,
    inSteps = false,
  ): void => {
    const { index, term } = entry;
    const revision = store.mvcc.currentRevision;
    story.record(
      name,
      () => `applies ${index} of term ${term} to revision ${revision}`,
      undefined,
      index * 65_537 + revision,
    );
    const isSound = () => applier.timesAltered === timesAltered;
    look(() => {
      safety.applied(name, store, entry, applied, isAltered);
      safety.etcd?.applied(name, store, entry, applied);
      if (applied?.error !== undefined && !isAltered) refused.failed(index, applied.error, inSteps);
      if (!isAltered) hashCheck.applied(name, store, index, (error) => deps.fail(error), isSound);
    });
    deps.named(isNamed(member.id, store));
  };
  const begin = store.begin.bind(store);
  const applyConfChange = store.applyConfChange.bind(store);
  const before = (): Before => ({
    isAltered: applier.isAltered,
    timesAltered: applier.timesAltered,
  });
  // All answers are made: a caller could have waited for each.
  store.begin = (entry) => {
    refused.begins();
    const outcome = begin(entry);
    if (isSteps(outcome))
      return whenDone(outcome, (applied) => wasApplied(entry, applied, before(), true));
    wasApplied(entry, outcome, before());
    return outcome;
  };
  store.applyConfChange = (entry, change, confState) => {
    applyConfChange(entry, change, confState);
    wasApplied(entry, undefined, before());
    look(() => countLearners(name, store, maxLearners));
  };
}

/** What was known of the member's store when an entry was applied. */
interface Before {
  readonly isAltered: boolean;
  readonly timesAltered: number;
}

function* whenDone<T>(steps: Steps<T>, done: (result: T) => void): Steps<T> {
  const result = yield* steps;
  done(result);
  return result;
}

/** SIM-10. */
function countLearners(name: string, { membership }: Store, maxLearners: number): void {
  const learners = membership.members().filter(({ isLearner }) => isLearner).length;
  if (learners > maxLearners)
    violate("SIM-10", `${name} has ${learners} learners, and --max-learners is ${maxLearners}`);
}

/** Whether an alarm CORRUPT names the member. */
function isNamed(memberId: bigint, { alarms }: Store): boolean {
  return (
    alarms.corrupt && alarms.list(AlarmType.CORRUPT).some((alarm) => alarm.memberId === memberId)
  );
}
