/** Proposals: appended by the leader, forwarded by other members. */
import { EMPTY, raftpb, WireError } from "@quorate/proto";
import { ConfChangeRefusal, changeConfState, isJoint, isLeaveJoint } from "./confchange.ts";
import type { Core } from "./core.ts";
import { confChangeOf, isConfChange } from "./entries.ts";
import { newMessage } from "./message.ts";
import { appendAsLeader } from "./replicate.ts";
import type { ConfChangeResult, ProposeResult } from "./status.ts";

const { EntryConfChangeV2, EntryNormal } = raftpb.EntryType;

/** The reason why a leader refuses a proposal of so many bytes now; "accepted" if it does not. */
function admission(core: Core, dataBytes: number): ProposeResult {
  if (core.self === undefined) return "not-a-member";
  if (core.leadTransferee !== 0n) return "transferring";
  // With nothing uncommitted, a batch of any size is accepted, or a large one never could be. Empty
  // entries always are: the entry that leaves a joint configuration is empty.
  if (
    core.uncommittedBytes > 0 &&
    dataBytes > 0 &&
    core.uncommittedBytes + dataBytes > core.config.maxUncommittedBytes
  ) {
    return "too-large-uncommitted";
  }
  return "accepted";
}

/** Proposes normal entries: all of them or none. */
export function propose(core: Core, payloads: readonly Uint8Array[]): ProposeResult {
  if (payloads.length === 0) return "accepted";
  if (!core.isLeader) return forward(core, payloads, EntryNormal);
  let dataBytes = 0;
  for (const data of payloads) dataBytes += data.length;
  const admitted = admission(core, dataBytes);
  if (admitted !== "accepted") return admitted;
  const entries: raftpb.Entry[] = new Array(payloads.length);
  const term = core.term;
  const next = core.log.lastIndex + 1;
  for (let i = 0; i < payloads.length; i++)
    entries[i] = { type: EntryNormal, term, index: next + i, data: payloads[i] };
  appendAsLeader(core, entries);
  return "accepted";
}

/** Forwards payloads to the leader in one message. */
function forward(
  core: Core,
  payloads: readonly Uint8Array[],
  type: raftpb.EntryType,
): ProposeResult {
  if (core.leader === 0n) return "no-leader";
  const message = newMessage(raftpb.MessageType.MsgProp, core.leader, core.id, 0);
  message.entries = payloads.map((data) => ({ type, term: 0, index: 0, data }));
  core.send(message);
  return "accepted";
}

/** Proposes an encoded configuration change. */
export function proposeConfChange(
  core: Core,
  type: raftpb.EntryType,
  data: Uint8Array,
): ConfChangeResult {
  if (!core.isLeader) return forward(core, [data], type);
  return appendProposed(core, [{ type, term: 0, index: 0, data }]);
}

/**
 * A proposal from another member: appended by the leader, forwarded by other members, dropped if no
 * leader is known.
 */
export function handleProposal(core: Core, message: raftpb.Message): void {
  if (message.entries.length === 0) return;
  if (core.isLeader) {
    const result = appendProposed(core, message.entries);
    if (result !== "accepted") core.note("debug", "dropped a forwarded proposal", { result });
    return;
  }
  if (core.leader === 0n || core.leader === message.from) return;
  core.send({ ...message, to: core.leader });
}

/**
 * Appends entries of any type, each configuration change only if it may be proposed now. Sets their
 * term and index.
 */
function appendProposed(core: Core, proposed: readonly raftpb.Entry[]): ConfChangeResult {
  let dataBytes = 0;
  for (const entry of proposed) dataBytes += entry.data.length;
  const admitted = admission(core, dataBytes);
  if (admitted !== "accepted") return admitted;
  const term = core.term;
  const next = core.log.lastIndex + 1;
  let result: ConfChangeResult = "accepted";
  const entries = proposed.map((entry, i) => {
    const { type, data } = entry;
    if (!isConfChange(entry)) return { type, term, index: next + i, data };
    const refusal = confChangeRefusal(core, entry);
    if (refusal === undefined) {
      core.pendingConfIndex = next + i;
      return { type, term, index: next + i, data };
    }
    core.note("info", "refused a configuration change", { reason: refusal });
    result = "conf-change-refused";
    return { type: EntryNormal, term, index: next + i, data: EMPTY };
  });
  appendAsLeader(core, entries);
  return result;
}

/**
 * The reason why a change may not be proposed now. While none is pending, the change is checked
 * against the current configuration, so that no change that does not fit is appended.
 */
function confChangeRefusal(core: Core, entry: raftpb.Entry): string | undefined {
  if (core.pendingConfIndex > core.log.applied) {
    return `one may be pending at index ${core.pendingConfIndex}, applied is ${core.log.applied}`;
  }
  try {
    const change = confChangeOf(entry)!;
    const conf = core.tracker.conf;
    if (isJoint(conf) && !isLeaveJoint(change))
      return "the configuration is joint and has to be left first";
    const changed = changeConfState(conf, change);
    return changed instanceof ConfChangeRefusal ? changed.reason : undefined;
  } catch (error) {
    if (error instanceof WireError) return `malformed: ${error.message}`;
    throw error;
  }
}

/**
 * Proposes to leave a joint configuration with autoLeave, once the change that entered it is
 * applied. Called whenever that may have become possible: after applying, and after a failed
 * transfer of leadership (which blocks proposals).
 */
export function leaveJointIfDue(core: Core): void {
  if (!core.isLeader || !core.tracker.conf.autoLeave || core.log.applied < core.pendingConfIndex)
    return;
  if (proposeConfChange(core, EntryConfChangeV2, EMPTY) === "accepted")
    core.note("info", "leaves the joint configuration");
}
