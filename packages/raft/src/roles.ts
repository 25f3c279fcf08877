/** Changes of role and term. */
import { idToHex } from "@quorate/proto";
import type { Core } from "./core.ts";
import { emptyEntry } from "./entries.ts";
import { violated } from "./invariants.ts";
import { appendAsLeader } from "./replicate.ts";

/** The common part of every change of role. */
function reset(core: Core, term: number): void {
  core.enterTerm(term);
  core.leader = 0n;
  core.leadTransferee = 0n;
  core.leaseWaived = false;
  core.electionElapsed = 0;
  core.heartbeatElapsed = 0;
  core.heartbeatDue = false;
  core.randomizeElectionTimeout();
  core.tracker.resetVotes();
  core.tracker.resetProgress(core.log.lastIndex + 1);
  core.pendingConfIndex = 0;
  core.uncommittedBytes = 0;
  core.selfVoteDue = "none";
  core.reads.reset();
}

/** Becomes a follower. @param leader 0n if unknown */
export function becomeFollower(core: Core, term: number, leader: bigint): void {
  const wasFollower = core.role === "follower" && core.term === term;
  reset(core, term);
  core.role = "follower";
  core.leader = leader;
  if (!wasFollower) core.note("info", "became follower");
}

/** Starts a pre-vote: neither term nor vote change yet. */
export function becomePreCandidate(core: Core): void {
  if (core.role === "leader") violated("RAFT-11", "leader to pre-candidate");
  core.role = "pre-candidate";
  core.leader = 0n;
  core.tracker.resetVotes();
  core.randomizeElectionTimeout();
  core.note("info", "became pre-candidate");
}

export function becomeCandidate(core: Core): void {
  if (core.role === "leader") violated("RAFT-11", "leader to candidate");
  reset(core, core.term + 1);
  core.role = "candidate";
  core.castVote(core.id);
  core.note("info", "became candidate");
}

/** Becomes leader and opens the term with an empty entry: committing that commits all before it. */
export function becomeLeader(core: Core): void {
  if (core.role !== "candidate") violated("RAFT-11", `${core.role} to leader`);
  reset(core, core.term);
  core.role = "leader";
  core.leader = core.id;
  const lastIndex = core.log.lastIndex;
  const self = core.self;
  if (self !== undefined) {
    self.becomeReplicate();
    self.match = core.log.stable;
    self.recentActive = true;
  }
  // A configuration change may be among the entries that are not applied: none is proposed before
  // all of them are.
  core.pendingConfIndex = lastIndex;
  core.termStartIndex = lastIndex;
  appendAsLeader(core, [emptyEntry(core.term, lastIndex + 1)]);
  core.note("info", "became leader", { lastIndex, leader: idToHex(core.id) });
}
