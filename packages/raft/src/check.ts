/**
 * What another member's message cannot say, whatever has happened to the cluster: such a message is
 * refused at the border, so that it reaches no invariant. A member that keeps to the protocol never
 * sends one, and a store or a disk that lost what it had acknowledged is seen here first.
 */
import { idToHex, raftpb } from "@quorate/proto";
import { normalize, problemOf } from "./confchange.ts";
import { MAX_INDEX, MAX_TERM } from "./config.ts";
import type { Core } from "./core.ts";
import { isFromLeader, messageName } from "./message.ts";

const { MsgApp, MsgAppResp, MsgHeartbeat, MsgProp, MsgSnap } = raftpb.MessageType;

/**
 * A message's term is no further above that of the member that it reaches. One message cannot use
 * up all terms.
 */
export const MAX_TERM_LEAP = 2 ** 32;

const MESSAGE_TYPES: ReadonlySet<number> = new Set(Object.values(raftpb.MessageType));
const LAST_ENTRY_TYPE = raftpb.EntryType.EntryConfChangeV2;

/** Why a message cannot be from a member that keeps to the protocol; undefined for one that can. */
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

/** A leader tells a follower of no commit beyond what the follower has acknowledged. */
function impossibleHeartbeat(core: Core, { term, commit }: raftpb.Message): string | undefined {
  const { lastIndex } = core.log;
  // Of an old term, it is answered with the new one, and its commit index not looked at.
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
