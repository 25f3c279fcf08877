/**
 * A leader's messages to its followers. Handlers only mark what is due; flush() sends it once per
 * Ready, so that all proposals and commits of a turn share one append to each follower.
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

/** Queues all messages that a leader's followers are due. Does nothing on other machines. */
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
 * Sends one append from progress.next, or a snapshot if the log starts later. False if there is
 * nothing to send.
 */
function sendAppend(core: Core, progress: Progress, evenIfEmpty: boolean): boolean {
  if (progress.paused) return false;
  const log = core.log;
  const previous = progress.next - 1;
  const previousTerm = log.term(previous);
  if (previousTerm === undefined) return sendSnapshot(core, progress);
  // With a full window only empty appends pass: their responses show whether the messages in it
  // were lost.
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
 * Sends the log's snapshot mark: the driver streams a state of that index or above. False if the
 * member seems to be unreachable.
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

/** A heartbeat to every member if `everyone`, else to those that confirm reads. */
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
    // Not above the follower's known match: beyond that its log may differ.
    heartbeat.commit = Math.min(progress.match, core.log.committed);
    if (context !== undefined) heartbeat.context = context;
    core.send(heartbeat);
    progress.sentCommit = heartbeat.commit;
  }
  advanceReads(core);
}

/**
 * Commits entries that a quorum has on disk. Only an entry of the leader's own term is counted; it
 * commits the ones before it too (paper, section 5.4.2). True if the commit index moved.
 */
export function advanceCommit(core: Core): boolean {
  const log = core.log;
  const index = core.tracker.quorumMatch();
  if (index <= log.committed || log.term(index) !== core.term) return false;
  const before = Math.max(log.committed, core.termStartIndex);
  log.commitTo(index);
  core.uncommittedBytes -= log.dataBytes(before + 1, index);
  const bytes = core.uncommittedBytes;
  if (bytes < 0 || (bytes > 0 && index === log.lastIndex))
    violated("RAFT-21", `${bytes} bytes after ${index}, the log ends at ${log.lastIndex}`);
  releaseHeldReads(core);
  return true;
}

/** The leader's own disk write is durable: its own copy counts from now on. */
export function acknowledgeSelf(core: Core): void {
  const self = core.self;
  if (!core.isLeader || self === undefined) return;
  if (self.acknowledge(core.log.stable, core.log.lastIndex)) advanceCommit(core);
}

/** Appends entries, with terms and indexes set, to the leader's log. */
export function appendAsLeader(core: Core, entries: readonly raftpb.Entry[]): void {
  core.log.append(entries);
  for (const entry of entries) core.uncommittedBytes += entry.data.length;
}
