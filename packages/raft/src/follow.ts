/**
 * A follower's handling of its leader's messages. They are of the current term, and their sender is
 * the leader.
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

/** Appends entries, or responds with an index at which the two logs may match. */
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
  // The leader's log has no term above logTerm up to this index, so the logs cannot match where
  // this log's terms are higher.
  const meet = log.findConflict(Math.min(append.index, log.lastIndex), append.logTerm);
  const response = core.message(MsgAppResp, append.from);
  response.reject = true;
  response.index = append.index;
  response.rejectHint = meet.index;
  response.logTerm = meet.term;
  core.sendAfterSync(response);
}

/**
 * Commits up to the leader's commit index (the leader knows that this log has it) and returns the
 * context, which confirms reads and the lease.
 */
export function handleHeartbeat(core: Core, heartbeat: raftpb.Message): void {
  core.log.commitTo(heartbeat.commit);
  const response = core.message(MsgHeartbeatResp, heartbeat.from);
  response.context = heartbeat.context;
  core.send(response);
}

/**
 * Replaces the log with a snapshot, unless the log is already that far. The response carries the
 * index from which the leader continues.
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
  // The driver may still have older entries to apply, configuration changes among them, so this
  // configuration takes effect after them.
  core.restoredConfs.push({ index, conf: checkConfState(conf) });
  core.note("info", "starts over from a snapshot", { index, snapshotTerm: term });
  return true;
}
