/** Messages: one constructor, and the groups of message types. */
import { EMPTY, raftpb } from "@quorate/proto";

const { MessageType } = raftpb;

/** Shared by all messages without entries; frozen, so that no code can add any. */
export const NO_ENTRIES = Object.freeze([]) as unknown as raftpb.Entry[];
const NO_RESPONSES = Object.freeze([]) as unknown as raftpb.Message[];

/**
 * The context of a vote request in a transfer of leadership: leases do not prevent that campaign.
 * The value is etcd's, since it goes over the wire.
 */
export const CAMPAIGN_TRANSFER: Uint8Array = new Uint8Array(
  [..."CampaignTransfer"].map((c) => c.charCodeAt(0)),
);

/** A message with these fields; all others have their defaults. */
export function newMessage(
  type: raftpb.MessageType,
  to: bigint,
  from: bigint,
  term: number,
): raftpb.Message {
  return {
    type,
    to,
    from,
    term,
    logTerm: 0,
    index: 0,
    entries: NO_ENTRIES,
    commit: 0,
    snapshot: undefined,
    reject: false,
    rejectHint: 0,
    context: EMPTY,
    vote: 0n,
    responses: NO_RESPONSES,
  };
}

/**
 * True for messages that etcd's library accepts only from the machine's own driver; from a peer
 * they are refused.
 */
export function isLocalMessage(type: raftpb.MessageType): boolean {
  switch (type) {
    case MessageType.MsgHup:
    case MessageType.MsgBeat:
    case MessageType.MsgUnreachable:
    case MessageType.MsgSnapStatus:
    case MessageType.MsgCheckQuorum:
    case MessageType.MsgStorageAppend:
    case MessageType.MsgStorageAppendResp:
    case MessageType.MsgStorageApply:
    case MessageType.MsgStorageApplyResp:
    case MessageType.MsgForgetLeader:
      return true;
    default:
      return false;
  }
}

/** True for responses: they count only from members of the configuration. */
export function isResponse(type: raftpb.MessageType): boolean {
  switch (type) {
    case MessageType.MsgAppResp:
    case MessageType.MsgVoteResp:
    case MessageType.MsgHeartbeatResp:
    case MessageType.MsgPreVoteResp:
    case MessageType.MsgReadIndexResp:
      return true;
    default:
      return false;
  }
}

/** True for messages that only the leader of their term sends. */
export function isFromLeader(type: raftpb.MessageType): boolean {
  return (
    type === MessageType.MsgApp || type === MessageType.MsgHeartbeat || type === MessageType.MsgSnap
  );
}

/** True for messages without a term: proposals and reads forwarded to the leader. */
export function isTermless(type: raftpb.MessageType): boolean {
  return type === MessageType.MsgProp || type === MessageType.MsgReadIndex;
}

const names = Object.fromEntries(Object.entries(MessageType).map(([name, value]) => [value, name]));

/** The name of a message type, for logs. */
export function messageName(type: raftpb.MessageType): string {
  return names[type] ?? `message type ${type}`;
}
