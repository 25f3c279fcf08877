/**
 * What a follower does with its leader's messages. They are of its own term, and their sender is
 * known to lead.
 */
import { raftpb } from "@quorate/proto";
import { checkConfState, normalize } from "./confchange.ts";
import type { Core } from "./core.ts";

const { MsgAppResp, MsgHeartbeatResp } = raftpb.MessageType;

function acknowledge(core: Core, to: bigint, index: number): void {
  const response = core.message(MsgAppResp, to);
  response.index = index;
  core.sendAfterSync(response);
}

/** Takes entries over, or says where the logs may meet. */
export function handleAppend(core: Core, append: raftpb.Message): void {
  const log = core.log;
  if (append.index < log.committed) {
    acknowledge(core, append.from, log.committed);
    return;
  }
  const last = log.tryAppend(append.index, append.logTerm, append.entries, append.commit);
  if (last !== undefined) {
    acknowledge(core, append.from, last);
    return;
  }
  // The leader's log has no term above logTerm up to index, so the logs cannot meet where this
  // one's terms are above it.
  const meet = log.findConflict(Math.min(append.index, log.lastIndex), append.logTerm);
  const response = core.message(MsgAppResp, append.from);
  response.reject = true;
  response.index = append.index;
  response.rejectHint = meet.index;
  response.logTerm = meet.term;
  core.sendAfterSync(response);
}

/**
 * Commits as far as the leader knows this log to be right, and sends the context back: that
 * confirms reads and the lease.
 */
export function handleHeartbeat(core: Core, heartbeat: raftpb.Message): void {
  core.log.commitTo(heartbeat.commit);
  const response = core.message(MsgHeartbeatResp, heartbeat.from);
  response.context = heartbeat.context;
  core.send(response);
}

/**
 * Starts over from a snapshot, unless the log is as far already. The answer tells the leader where
 * to go on from.
 */
export function handleSnapshot(core: Core, message: raftpb.Message): void {
  const snapshot = message.snapshot;
  const log = core.log;
  if (snapshot !== undefined && restore(core, snapshot))
    acknowledge(core, message.from, log.lastIndex);
  else acknowledge(core, message.from, log.committed);
}

function restore(core: Core, snapshot: raftpb.Snapshot): boolean {
  const { index, term, confState } = snapshot.metadata;
  const log = core.log;
  if (index <= log.committed) return false;
  const conf = normalize(confState);
  if (
    !conf.voters.includes(core.id) &&
    !conf.votersOutgoing.includes(core.id) &&
    !conf.learners.includes(core.id)
  ) {
    core.note("warn", "ignored a snapshot whose configuration does not know this member", {
      index,
    });
    return false;
  }
  if (log.matches(index, term)) {
    log.commitTo(index);
    core.note("info", "has all that a snapshot brings", { index });
    return false;
  }
  log.restore(snapshot);
  // The driver may still have older entries to apply, configuration changes among them, so this one
  // waits for its turn.
  core.restoredConfs.push({ index, conf: checkConfState(conf) });
  core.note("info", "starts over from a snapshot", { index, snapshotTerm: term });
  return true;
}
