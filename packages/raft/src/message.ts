/**
 * Messages: one constructor, the groups of message types, and the refusal of messages that no
 * member that follows the protocol sends.
 */
import { EMPTY, idToHex, raftpb } from "@quorate/proto";
import { normalize, problemOf } from "./confchange.ts";
import { MAX_INDEX, MAX_TERM } from "./interface.ts";

const { MessageType } = raftpb;

/** Shared by all messages without entries; frozen, so that no code can add any. */
export const NO_ENTRIES: raftpb.Entry[] = [];
const NO_RESPONSES: raftpb.Message[] = [];
Object.freeze(NO_ENTRIES);
Object.freeze(NO_RESPONSES);

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

/**
 * The most by which a message's term may exceed this member's term. It keeps one message from using
 * up all terms.
 */
export const MAX_TERM_LEAP = 2 ** 32;

const MESSAGE_TYPES: ReadonlySet<number> = new Set(Object.values(MessageType));
const LAST_ENTRY_TYPE = raftpb.EntryType.EntryConfChangeV2;

/** The state of a machine that decides which messages are possible. */
export interface Receiver {
  readonly term: number;
  /** The end of its log. */
  readonly lastIndex: number;
}

/**
 * The reason why no correct member sends this message; undefined if one may. Such a message comes
 * from a faulty or hostile peer, or from a store or disk that lost what it had acknowledged, and
 * could break an invariant of the machine. @param leads true if the receiver leads its term
 */
export function impossible(
  message: raftpb.Message,
  receiver: Receiver,
  leads: boolean,
): string | undefined {
  const { type, term } = message;
  if (!MESSAGE_TYPES.has(type)) return `unknown message type ${type}`;
  if (term > receiver.term + MAX_TERM_LEAP || term > MAX_TERM)
    return `term ${term}, this member's is ${receiver.term}`;
  if (term === receiver.term && leads && isFromLeader(type)) {
    return `${messageName(type)} of another leader of term ${term}, which this member leads`;
  }
  switch (type) {
    case MessageType.MsgApp:
      return impossibleAppend(message);
    case MessageType.MsgHeartbeat:
      return impossibleHeartbeat(message, receiver);
    case MessageType.MsgAppResp:
      return leads ? impossibleAcknowledgement(message, receiver) : undefined;
    case MessageType.MsgSnap:
      return impossibleSnapshot(message);
    case MessageType.MsgProp:
      return message.entries.every(isKnown)
        ? undefined
        : "a proposal of an entry of an unknown type";
    default:
      return undefined;
  }
}

function isKnown({ type }: raftpb.Entry): boolean {
  return type >= 0 && type <= LAST_ENTRY_TYPE;
}

/** The entries of an append follow (index, logTerm) without a gap and with terms that fit. */
function impossibleAppend(append: raftpb.Message): string | undefined {
  let { index, logTerm: term } = append;
  if (term > append.term) return `an append of term ${append.term} after an entry of term ${term}`;
  for (const entry of append.entries) {
    if (entry.index !== index + 1 || entry.term < term || entry.term > append.term) {
      return `entry ${entry.index} of term ${entry.term} follows ${index} of term ${term} in an append of term ${append.term}`;
    }
    if (!isKnown(entry)) return `entry ${entry.index} of the unknown type ${entry.type}`;
    index = entry.index;
    term = entry.term;
  }
  return undefined;
}

/** A leader sends a follower no commit index beyond what the follower has acknowledged. */
function impossibleHeartbeat(
  { term, commit }: raftpb.Message,
  { term: ownTerm, lastIndex }: Receiver,
): string | undefined {
  // A heartbeat of an old term is answered with the current term; its commit index is not used.
  if (term < ownTerm || commit <= lastIndex) return undefined;
  return `commit index ${commit}, this member's log ends at ${lastIndex}: either the sender is wrong, or this log has lost its end`;
}

/** A follower acknowledges to a leader no entry that the leader does not have. */
function impossibleAcknowledgement(
  { from, index, reject, term }: raftpb.Message,
  { term: ownTerm, lastIndex }: Receiver,
): string | undefined {
  if (reject || term !== ownTerm || index <= lastIndex) return undefined;
  return `${idToHex(from)} acknowledges entry ${index}, the leader's last is ${lastIndex}`;
}

function impossibleSnapshot({ snapshot, term }: raftpb.Message): string | undefined {
  if (snapshot === undefined) return "a snapshot's message without the snapshot";
  const { metadata } = snapshot;
  if (metadata.index > MAX_INDEX) return `a snapshot of index ${metadata.index}`;
  if (metadata.term > term)
    return `a snapshot of term ${metadata.term} in a message of term ${term}`;
  const problem = problemOf(normalize(metadata.confState));
  return problem === undefined
    ? undefined
    : `a snapshot with an impossible configuration: ${problem}`;
}
