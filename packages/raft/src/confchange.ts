/**
 * Configuration changes on a ConfState (Raft thesis, section 4.3; joint: paper, section 6).
 *
 *     simple       (1 2 3)            add 4                (1 2 3 4)
 *     enter joint  (1 2 3)            add 4, remove 1      (2 3 4)&&(1 2 3)
 *     leave joint  (2 3 4)&&(1 2 3)                        (2 3 4)
 *
 * In a joint configuration, `voters` is the incoming half and `votersOutgoing` the outgoing one. A
 * voter that becomes a learner but still votes in the outgoing half is listed in learnersNext. All
 * lists are in ascending order.
 */
import { raftpb } from "@quorate/proto";
import { violated } from "./invariants.ts";

type ConfState = raftpb.ConfState;

/** The reason why a change does not fit the configuration. */
export class ConfChangeRefusal {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

const { ConfChangeAddNode, ConfChangeRemoveNode, ConfChangeUpdateNode, ConfChangeAddLearnerNode } =
  raftpb.ConfChangeType;
const { ConfChangeTransitionAuto, ConfChangeTransitionJointExplicit } = raftpb.ConfChangeTransition;

function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The same ids, each once, in ascending order. */
export function sortedIds(ids: Iterable<bigint>): bigint[] {
  return [...new Set(ids)].sort(ascending);
}

function sameIds(a: readonly bigint[], b: readonly bigint[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}

/** A ConfState with its lists in order. */
export function normalize(conf: ConfState): ConfState {
  return {
    voters: sortedIds(conf.voters),
    learners: sortedIds(conf.learners),
    votersOutgoing: sortedIds(conf.votersOutgoing),
    learnersNext: sortedIds(conf.learnersNext),
    autoLeave: conf.autoLeave,
  };
}

/** True if two ConfStates, both in order, say the same. */
export function sameConfState(a: ConfState, b: ConfState): boolean {
  return (
    sameIds(a.voters, b.voters) &&
    sameIds(a.learners, b.learners) &&
    sameIds(a.votersOutgoing, b.votersOutgoing) &&
    sameIds(a.learnersNext, b.learnersNext) &&
    a.autoLeave === b.autoLeave
  );
}

/** How a ConfState contradicts itself; undefined if it does not. */
export function problemOf(conf: ConfState): string | undefined {
  for (const id of conf.learners) {
    if (conf.voters.includes(id) || conf.votersOutgoing.includes(id))
      return `${id} is voter and learner`;
  }
  for (const id of conf.learnersNext) {
    if (!conf.votersOutgoing.includes(id))
      return `${id} waits to become a learner but votes nowhere`;
    if (conf.voters.includes(id)) return `${id} waits to become a learner but goes on voting`;
  }
  if (!isJoint(conf) && (conf.learnersNext.length > 0 || conf.autoLeave))
    return "marks of a joint configuration in a simple one";
  if (isJoint(conf) && conf.voters.length === 0)
    return "a joint configuration enters one without voters";
  return undefined;
}

/** Throws RAFT-14 if a ConfState contradicts itself; returns it otherwise. */
export function checkConfState(conf: ConfState): ConfState {
  const problem = problemOf(conf);
  if (problem !== undefined) violated("RAFT-14", problem);
  return conf;
}

export function isJoint(conf: ConfState): boolean {
  return conf.votersOutgoing.length > 0;
}

/** True if id votes in either half of the configuration. */
export function isVoter(conf: ConfState, id: bigint): boolean {
  return conf.voters.includes(id) || conf.votersOutgoing.includes(id);
}

/** True for voters of either half, and learners. */
export function isMember(conf: ConfState, id: bigint): boolean {
  return isVoter(conf, id) || conf.learners.includes(id);
}

/** Ids that vote in either half, ascending. */
export function voterIds(conf: ConfState): readonly bigint[] {
  return isJoint(conf) ? sortedIds([...conf.voters, ...conf.votersOutgoing]) : conf.voters;
}

/** Ids of all members, ascending. */
export function memberIds(conf: ConfState): readonly bigint[] {
  return sortedIds([...conf.voters, ...conf.votersOutgoing, ...conf.learners]);
}

/** True if a change requests to leave a joint configuration. */
export function isLeaveJoint(change: raftpb.ConfChangeV2): boolean {
  return change.transition === ConfChangeTransitionAuto && change.changes.length === 0;
}

/** The configuration after a change, or why the change does not fit. */
export function changeConfState(
  conf: ConfState,
  change: raftpb.ConfChangeV2,
): ConfState | ConfChangeRefusal {
  if (isLeaveJoint(change)) return leaveJoint(conf);
  if (change.transition !== ConfChangeTransitionAuto || change.changes.length > 1) {
    return enterJoint(
      conf,
      change.changes,
      change.transition !== ConfChangeTransitionJointExplicit,
    );
  }
  return simple(conf, change.changes);
}

/** The configuration after a committed change. Throws RAFT-15 if the change does not fit. */
export function confStateAfter(conf: ConfState, change: raftpb.ConfChangeV2): ConfState {
  const next = changeConfState(conf, change);
  if (next instanceof ConfChangeRefusal) violated("RAFT-15", next.reason);
  return next;
}

function enterJoint(
  conf: ConfState,
  changes: readonly raftpb.ConfChangeSingle[],
  autoLeave: boolean,
): ConfState | ConfChangeRefusal {
  if (isJoint(conf)) return new ConfChangeRefusal("the configuration is joint already");
  if (conf.voters.length === 0)
    return new ConfChangeRefusal("a configuration without voters cannot become joint");
  return applyChanges({ ...conf, votersOutgoing: conf.voters, autoLeave }, changes);
}

function leaveJoint(conf: ConfState): ConfState | ConfChangeRefusal {
  if (!isJoint(conf)) return new ConfChangeRefusal("the configuration is not joint");
  return checkConfState({
    voters: conf.voters,
    learners: sortedIds([...conf.learners, ...conf.learnersNext]),
    votersOutgoing: [],
    learnersNext: [],
    autoLeave: false,
  });
}

function simple(
  conf: ConfState,
  changes: readonly raftpb.ConfChangeSingle[],
): ConfState | ConfChangeRefusal {
  if (isJoint(conf)) return new ConfChangeRefusal("a simple change in a joint configuration");
  return applyChanges(conf, changes);
}

/** Applies the changes to `voters` and the learners; votersOutgoing stays as it is. */
function applyChanges(
  conf: ConfState,
  changes: readonly raftpb.ConfChangeSingle[],
): ConfState | ConfChangeRefusal {
  const voters = new Set(conf.voters);
  const learners = new Set(conf.learners);
  const learnersNext = new Set(conf.learnersNext);
  for (const { type, nodeId } of changes) {
    // etcd writes id 0 into a committed change that it rejected when applying it.
    if (nodeId === 0n) continue;
    if (type === ConfChangeAddNode) {
      voters.add(nodeId);
      learners.delete(nodeId);
      learnersNext.delete(nodeId);
    } else if (type === ConfChangeAddLearnerNode) {
      voters.delete(nodeId);
      if (conf.votersOutgoing.includes(nodeId)) learnersNext.add(nodeId);
      else learners.add(nodeId);
    } else if (type === ConfChangeRemoveNode) {
      voters.delete(nodeId);
      learners.delete(nodeId);
      learnersNext.delete(nodeId);
    } else if (type !== ConfChangeUpdateNode) {
      return new ConfChangeRefusal(`unknown kind of change ${type}`);
    }
  }
  if (voters.size === 0) return new ConfChangeRefusal("no voter would be left");
  return checkConfState({
    voters: sortedIds(voters),
    learners: sortedIds(learners),
    votersOutgoing: conf.votersOutgoing,
    learnersNext: sortedIds(learnersNext),
    autoLeave: conf.autoLeave,
  });
}
