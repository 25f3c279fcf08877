/** What a leader does with answers, reports and orders. */
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
 * The follower's log does not hold what the append follows. It names a place where it may: the
 * highest below with a term not above the append's. From its term there, the leader sees in turn
 * which places of its own log are out of the question. So a probe costs at most one round trip for
 * each term that differs, not one for each entry.
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
  // An answer that tells nothing new still ends a probe: the logs meet.
  if (!news && !(progress.state === "probe" && progress.match === index)) return;
  if (progress.state === "probe") {
    progress.becomeReplicate();
  } else if (progress.state === "replicate") {
    progress.inflights.freeUpTo(index);
  } else if (progress.match + 1 >= core.log.firstIndex) {
    // Whatever snapshot it was that got there, the log can take it from here.
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
  // One more append may go out, empty if the window is full: if all that fills it was lost, nothing
  // else would ever tell.
  progress.flowPaused = false;
  if (progress.match < core.log.lastIndex || progress.state === "probe") progress.appendDue = true;
  const confirmed = decodeRound(response.context);
  if (confirmed === undefined || confirmed.round > core.reads.round || confirmed.tick > core.ticks)
    return;
  progress.ackedRound = Math.max(progress.ackedRound, confirmed.round);
  progress.ackedTick = Math.max(progress.ackedTick, confirmed.tick);
  advanceReads(core);
}

/** A snapshot went through, or did not. Either way the next append waits for a sign of life. */
export function handleSnapshotReport(progress: Progress, ok: boolean): void {
  if (progress.state !== "snapshot") return;
  if (!ok) progress.pendingSnapshot = 0;
  progress.becomeProbe();
  progress.flowPaused = true;
}

/** What was on its way is likely lost. */
export function handleUnreachable(progress: Progress): void {
  if (progress.state === "replicate") progress.becomeProbe();
}

/** Steps down if no quorum was heard of since the last time. */
export function checkQuorum(core: Core): void {
  if (core.tracker.takeQuorumActive(core.id)) return;
  core.note("warn", "leads no more: a quorum is not active");
  becomeFollower(core, core.term, 0n);
}

/**
 * Starts to hand leadership over: no proposals from now on, and as soon as the other has all
 * entries it may campaign.
 */
export function startTransfer(core: Core, to: bigint): TransferResult {
  if (to === core.id) return "already-leader";
  const progress = core.tracker.get(to);
  if (progress === undefined) return "unknown-member";
  if (!core.tracker.isVoter(to)) return "not-a-voter";
  if (core.leadTransferee === to) return "accepted";
  core.note("info", "hands leadership over", { to: idToHex(to) });
  core.leadTransferee = to;
  // It has an election timeout's time from here.
  core.electionElapsed = 0;
  if (progress.match === core.log.lastIndex) sendTimeoutNow(core, to);
  else progress.appendDue = true;
  return "accepted";
}

function sendTimeoutNow(core: Core, to: bigint): void {
  core.leaseGivenAway = true;
  core.send(core.message(raftpb.MessageType.MsgTimeoutNow, to));
}
