/**
 * A leader's way to its followers. Nothing is sent where the need arises: the needs are noted, and
 * flush() sends what is due once per Ready, so that all proposals and commits of a turn share one
 * append to each follower.
 */
import { idToHex, raftpb } from "@quorate/proto";
import type { Core } from "./core.ts";
import { entryBytes } from "./entries.ts";
import { violated } from "./invariants.ts";
import { NO_ENTRIES } from "./message.ts";
import type { Progress } from "./progress.ts";
import { advanceReads, releaseHeldReads } from "./read.ts";
import { encodeRound } from "./read-only.ts";

const { MsgApp, MsgHeartbeat, MsgSnap } = raftpb.MessageType;

/** Queues everything that a leader owes its followers now. Does nothing on other machines. */
export function flush(core: Core): void {
  if (!core.isLeader) return;
  const roundDue = core.reads.roundDue;
  if (core.heartbeatDue || roundDue) broadcastHeartbeat(core, core.heartbeatDue, roundDue);
  const committed = core.log.committed;
  for (const progress of core.tracker.all) {
    if (progress.id === core.id) continue;
    const due = progress.appendDue || progress.canBumpCommit(committed);
    progress.appendDue = false;
    if (!sendAppend(core, progress, due)) continue;
    while (sendAppend(core, progress, false));
  }
}

/**
 * Sends one append from progress.next, or a snapshot if the log does not reach that far back. False
 * if there is nothing to send.
 */
function sendAppend(core: Core, progress: Progress, evenIfEmpty: boolean): boolean {
  if (progress.paused) return false;
  const log = core.log;
  const previous = progress.next - 1;
  const previousTerm = log.term(previous);
  if (previousTerm === undefined) return sendSnapshot(core, progress);
  // A full window lets only empty appends pass: their answers tell whether what fills it was lost.
  const stopped = progress.state === "replicate" && progress.inflights.full;
  const entries =
    stopped || progress.next > log.lastIndex
      ? NO_ENTRIES
      : log.collect(progress.next, core.config.maxMessageBytes);
  if (entries.length === 0 && !evenIfEmpty) return false;
  const append = core.message(MsgApp, progress.id);
  append.index = previous;
  append.logTerm = previousTerm;
  append.entries = entries;
  append.commit = log.committed;
  core.send(append);
  let bytes = 0;
  for (const entry of entries) bytes += entryBytes(entry);
  progress.sentEntries(entries.length, bytes);
  progress.sentCommit = log.committed;
  return true;
}

/**
 * Sends the log's mark: the driver streams a state of that index or above. False if the member
 * seems to be away.
 */
function sendSnapshot(core: Core, progress: Progress): boolean {
  if (!progress.recentActive) return false;
  const metadata = core.log.snapshot;
  if (metadata.index === 0)
    violated("RAFT-17", `next ${progress.next} of ${idToHex(progress.id)}, the log starts at 1`);
  progress.becomeSnapshot(metadata.index);
  const message = core.message(MsgSnap, progress.id);
  message.snapshot = raftpb.Snapshot.create({ metadata });
  core.send(message);
  core.note("info", "sends a snapshot", {
    to: idToHex(progress.id),
    index: metadata.index,
    match: progress.match,
  });
  return true;
}

/** A heartbeat to everyone if `everyone`, else to those that confirm reads. */
function broadcastHeartbeat(core: Core, everyone: boolean, roundDue: boolean): void {
  core.heartbeatDue = false;
  const leased = core.config.readOnly === "lease";
  if (roundDue || leased) core.reads.startRound();
  const self = core.self;
  if (self !== undefined) self.ackedRound = core.reads.round;
  const context =
    leased || core.reads.isWaiting ? encodeRound(core.reads.round, core.ticks) : undefined;
  for (const progress of core.tracker.all) {
    if (progress.id === core.id || !(everyone || core.tracker.isVoter(progress.id))) continue;
    const heartbeat = core.message(MsgHeartbeat, progress.id);
    // No further than what the follower is known to have: its log may differ beyond.
    heartbeat.commit = Math.min(progress.match, core.log.committed);
    if (context !== undefined) heartbeat.context = context;
    core.send(heartbeat);
    progress.sentCommit = heartbeat.commit;
  }
  advanceReads(core);
}

/**
 * Commits what a quorum has on disk. Only an entry of the leader's own term is counted; the ones
 * before it come along (paper, section 5.4.2). True if the commit index moved.
 */
export function advanceCommit(core: Core): boolean {
  const log = core.log;
  const index = core.tracker.quorumMatch();
  if (index <= log.committed || log.term(index) !== core.term) return false;
  const before = Math.max(log.committed, core.termStartIndex);
  log.commitTo(index);
  core.uncommittedBytes -= log.dataBytes(before + 1, index);
  releaseHeldReads(core);
  return true;
}

/** The leader's own disk has caught up: its own copy counts from now on. */
export function acknowledgeSelf(core: Core): void {
  const self = core.self;
  if (!core.isLeader || self === undefined) return;
  if (self.acknowledge(core.log.stable, core.log.lastIndex)) advanceCommit(core);
}

/** Appends entries, whose terms and indexes are set, to the leader's log. */
export function appendAsLeader(core: Core, entries: readonly raftpb.Entry[]): void {
  core.log.append(entries);
  for (const entry of entries) core.uncommittedBytes += entry.data.length;
}
