/** A leader's handling of responses, reports and requests to transfer leadership. */
import { idToHex, raftpb } from "@quorate/proto";
import type { Core } from "./core.ts";
import type { Progress } from "./progress.ts";
import { advanceReads } from "./read.ts";
import { decodeRound } from "./read-only.ts";
import { advanceCommit } from "./replicate.ts";
import { becomeFollower } from "./roles.ts";
import type { TransferResult } from "./status.ts";

export function handleAppendResponse(
  core: Core,
  progress: Progress,
  response: raftpb.Message,
): void {
  progress.recentActive = true;
  if (response.reject) handleRejection(core, progress, response);
  else handleAcknowledgement(core, progress, response.index);
}

/**
 * The follower's log has no entry that matches the append's predecessor. Its hint is the highest
 * lower index with a term not above the append's. With the term at the hint, the leader skips its
 * own entries that cannot match. A probe thus costs at most one round trip per differing term, not
 * one per entry.
 */
function handleRejection(core: Core, progress: Progress, response: raftpb.Message): void {
  const meet =
    response.logTerm > 0
      ? core.log.findConflict(response.rejectHint, response.logTerm).index
      : response.rejectHint;
  if (!progress.reject(response.index, meet)) return;
  if (progress.state === "replicate") progress.becomeProbe();
  progress.appendDue = true;
  if (core.hasLogger)
    core.note("debug", "probes further back", { to: idToHex(progress.id), next: progress.next });
}

function handleAcknowledgement(core: Core, progress: Progress, index: number): void {
  const news = progress.acknowledge(index, core.log.lastIndex);
  // A response without news still ends a probe: the logs match there.
  if (!news && !(progress.state === "probe" && progress.match === index)) return;
  if (progress.state === "probe") {
    progress.becomeReplicate();
  } else if (progress.state === "replicate") {
    progress.inflights.freeUpTo(index);
  } else if (progress.match + 1 >= core.log.firstIndex) {
    // The log continues from the installed snapshot, whichever leader sent it.
    progress.becomeProbe();
    progress.becomeReplicate();
  }
  advanceCommit(core);
  if (progress.id === core.leadTransferee && progress.match === core.log.lastIndex)
    sendTimeoutNow(core, progress.id);
}

export function handleHeartbeatResponse(
  core: Core,
  progress: Progress,
  response: raftpb.Message,
): void {
  progress.recentActive = true;
  // Allows one more append, empty if the window is full: if all messages in the window were lost,
  // only its response would show that.
  progress.flowPaused = false;
  if (progress.match < core.log.lastIndex || progress.state === "probe") progress.appendDue = true;
  const confirmed = decodeRound(response.context);
  if (confirmed === undefined || confirmed.round > core.reads.round || confirmed.tick > core.ticks)
    return;
  progress.ackedRound = Math.max(progress.ackedRound, confirmed.round);
  progress.ackedTick = Math.max(progress.ackedTick, confirmed.tick);
  advanceReads(core);
}

/** A snapshot was installed, or failed. Either way the next append waits for a response. */
export function handleSnapshotReport(progress: Progress, ok: boolean): void {
  if (progress.state !== "snapshot") return;
  if (!ok) progress.pendingSnapshot = 0;
  progress.becomeProbe();
  progress.flowPaused = true;
}

/** Messages in flight to this member are probably lost. */
export function handleUnreachable(progress: Progress): void {
  if (progress.state === "replicate") progress.becomeProbe();
}

/** Steps down if no quorum was active since the last check. */
export function checkQuorum(core: Core): void {
  if (core.tracker.takeQuorumActive(core.id)) return;
  core.note("warn", "leads no more: a quorum is not active");
  becomeFollower(core, core.term, 0n);
}

/**
 * Starts a transfer of leadership: proposals stop, and the target may campaign as soon as it has
 * all entries.
 */
export function startTransfer(core: Core, to: bigint): TransferResult {
  if (to === core.id) return "already-leader";
  const progress = core.tracker.get(to);
  if (progress === undefined) return "unknown-member";
  if (!core.tracker.isVoter(to)) return "not-a-voter";
  if (core.leadTransferee === to) return "accepted";
  core.note("info", "hands leadership over", { to: idToHex(to) });
  core.leadTransferee = to;
  // The transfer times out after one election timeout from now.
  core.electionElapsed = 0;
  if (progress.match === core.log.lastIndex) sendTimeoutNow(core, to);
  else progress.appendDue = true;
  return "accepted";
}

function sendTimeoutNow(core: Core, to: bigint): void {
  core.leaseWaived = true;
  core.send(core.message(raftpb.MessageType.MsgTimeoutNow, to));
}
