/** Messages: made in one shape, and told apart. */
import { EMPTY, raftpb } from "@quorate/proto";

const { MessageType } = raftpb;

/** Shared by all messages without entries; frozen, so that nobody can put some in. */
export const NO_ENTRIES = Object.freeze([]) as unknown as raftpb.Entry[];
const NO_RESPONSES = Object.freeze([]) as unknown as raftpb.Message[];

/**
 * The context of a vote request that was ordered by the leader: leases do not hold it back. etcd's
 * word, for it goes over the wire.
 */
export const CAMPAIGN_TRANSFER: Uint8Array = new Uint8Array(
  [..."CampaignTransfer"].map((c) => c.charCodeAt(0)),
);

/** A message with every field at its default but these. */
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
 * True for messages that a machine's own driver sends in etcd's library; from a peer they are
 * refused.
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

/** True for answers: they count only from members of the configuration. */
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

/** True for what only the leader of the message's term sends. */
export function isFromLeader(type: raftpb.MessageType): boolean {
  return (
    type === MessageType.MsgApp || type === MessageType.MsgHeartbeat || type === MessageType.MsgSnap
  );
}

/** True for messages that carry no term: proposals and reads on their way to whoever leads. */
export function isTermless(type: raftpb.MessageType): boolean {
  return type === MessageType.MsgProp || type === MessageType.MsgReadIndex;
}

const names = Object.fromEntries(Object.entries(MessageType).map(([name, value]) => [value, name]));

/** The name of a message type, for logs. */
export function messageName(type: raftpb.MessageType): string {
  return names[type] ?? `message type ${type}`;
}
