/**
 * Refuses messages that no member that follows the protocol sends, before they can break an
 * invariant of this machine. Such a message comes from a faulty or hostile peer, or from a store or
 * disk that lost what it had acknowledged.
 */
import { idToHex, raftpb } from "@quorate/proto";
import { normalize, problemOf } from "./confchange.ts";
import { MAX_INDEX, MAX_TERM } from "./config.ts";
import type { Core } from "./core.ts";
import { isFromLeader, messageName } from "./message.ts";

const { MsgApp, MsgAppResp, MsgHeartbeat, MsgProp, MsgSnap } = raftpb.MessageType;

/**
 * The most by which a message's term may exceed this member's term. It keeps one message from using
 * up all terms.
 */
export const MAX_TERM_LEAP = 2 ** 32;

const MESSAGE_TYPES: ReadonlySet<number> = new Set(Object.values(raftpb.MessageType));
const LAST_ENTRY_TYPE = raftpb.EntryType.EntryConfChangeV2;

/** The reason why no correct member sends this message; undefined if one may. */
export function impossible(core: Core, message: raftpb.Message): string | undefined {
  const { type, term } = message;
  if (!MESSAGE_TYPES.has(type)) return `unknown message type ${type}`;
  if (term > core.term + MAX_TERM_LEAP || term > MAX_TERM)
    return `term ${term}, this member's is ${core.term}`;
  if (term === core.term && core.isLeader && isFromLeader(type)) {
    return `${messageName(type)} of another leader of term ${term}, which this member leads`;
  }
  if (type === MsgApp) return impossibleAppend(message);
  if (type === MsgHeartbeat) return impossibleHeartbeat(core, message);
  if (type === MsgAppResp) return impossibleAcknowledgement(core, message);
  if (type === MsgSnap) return impossibleSnapshot(message);
  if (type === MsgProp && !message.entries.every(isKnown))
    return "a proposal of an entry of an unknown type";
  return undefined;
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
function impossibleHeartbeat(core: Core, { term, commit }: raftpb.Message): string | undefined {
  const { lastIndex } = core.log;
  // A heartbeat of an old term is answered with the current term; its commit index is not used.
  if (term < core.term || commit <= lastIndex) return undefined;
  return `commit index ${commit}, this member's log ends at ${lastIndex}: either the sender is wrong, or this log has lost its end`;
}

function impossibleAcknowledgement(
  core: Core,
  { from, index, reject, term }: raftpb.Message,
): string | undefined {
  const { lastIndex } = core.log;
  if (reject || !core.isLeader || term !== core.term || index <= lastIndex) return undefined;
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
