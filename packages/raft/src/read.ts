/** Reads at a leader: held until its first commit, waiting for a round, or served by its lease. */
import { raftpb } from "@quorate/proto";
import type { Core } from "./core.ts";
import type { PendingRead } from "./read-only.ts";

/** Accepts a read at the leader; false if too many are waiting. */
export function acceptRead(core: Core, read: PendingRead): boolean {
  if (core.reads.full) return false;
  if (!core.committedInTerm) core.reads.hold(read);
  else confirmRead(core, read);
  return true;
}

/**
 * After the first commit of the term the leader knows the cluster's commit index: releases the
 * reads that waited for it.
 */
export function releaseHeldReads(core: Core): void {
  if (!core.committedInTerm) return;
  for (const read of core.reads.takeHeld()) confirmRead(core, read);
}

function confirmRead(core: Core, read: PendingRead): void {
  const index = core.log.committed;
  if (core.config.readOnly === "lease" && leaseHolds(core)) answerRead(core, read, index);
  else core.reads.add(read, index);
}

/**
 * True while no other machine can have been elected, provided all clocks tick alike: a quorum has
 * responded to heartbeats sent at quorumTick or later, and each of those members grants no vote for
 * electionTicks of its own ticks. One tick is deducted for rounding on either side, and a tenth for
 * clocks that differ.
 */
export function leaseHolds(core: Core): boolean {
  if (core.leaseWaived) return false;
  const self = core.self;
  if (self !== undefined) self.ackedTick = core.ticks;
  const { electionTicks } = core.config;
  const leaseTicks = electionTicks - 2 - Math.floor(electionTicks / 10);
  const since = core.tracker.quorumTick();
  return since >= 0 && core.ticks - since <= leaseTicks;
}

/** Completes the reads whose round a quorum has confirmed. */
export function advanceReads(core: Core): void {
  if (!core.isLeader || !core.reads.isWaiting) return;
  for (const read of core.reads.takeConfirmed(core.tracker.quorumRound()))
    answerRead(core, read, read.index);
}

function answerRead(core: Core, read: PendingRead, index: number): void {
  if (read.from === 0n || read.from === core.id) {
    core.readStates.push({ context: read.context, index });
    return;
  }
  const response = core.message(raftpb.MessageType.MsgReadIndexResp, read.from);
  response.index = index;
  response.entries = [raftpb.Entry.create({ data: read.context })];
  core.send(response);
}
