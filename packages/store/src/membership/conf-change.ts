/**
 * Configuration changes in entries: decoding, and the check of a change that another member
 * proposes.
 */
import { raftpb, WireError } from "@quorate/proto";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import { decodeChangeContext, type Member } from "./member.ts";

const { ConfChangeAddNode, ConfChangeAddLearnerNode, ConfChangeRemoveNode, ConfChangeUpdateNode } =
  raftpb.ConfChangeType;

/**
 * The change that an entry carries: of one member, or, with `changes`, Raft's own that leaves a
 * joint configuration. An InvalidRequestError if it does not decode or is of an unknown kind: every
 * member ignores it.
 */
export function readConfChange(
  entry: raftpb.Entry,
): raftpb.ConfChange | raftpb.ConfChangeV2 | InvalidRequestError {
  try {
    if (entry.type === raftpb.EntryType.EntryConfChangeV2)
      return raftpb.ConfChangeV2.decode(entry.data);
    const change = raftpb.ConfChange.decode(entry.data);
    memberOf(change);
    return change;
  } catch (error) {
    if (error instanceof WireError || error instanceof SyntaxError) return invalid(error.message);
    if (error instanceof InvalidRequestError) return error;
    throw error;
  }
}

/**
 * The member that a change describes; undefined for a removal. Throws SyntaxError and
 * InvalidRequestError.
 */
function memberOf(change: raftpb.ConfChange): Member | undefined {
  switch (change.type) {
    case ConfChangeAddNode:
    case ConfChangeAddLearnerNode:
    case ConfChangeUpdateNode:
      return decodeChangeContext(change.context).member;
    case ConfChangeRemoveNode:
      return undefined;
    default:
      throw new InvalidRequestError(`a configuration change of the unknown type ${change.type}`);
  }
}

/**
 * Checks the data of an EntryConfChange that another member proposes. Returns its id. @param
 * checkUrls throws for a list of URLs that no member can have @throws WireError,
 * InvalidRequestError, and the errors of checkUrls
 */
export function checkConfChangeData(
  data: Uint8Array,
  checkUrls: (urls: readonly string[]) => void,
): bigint {
  const change = raftpb.ConfChange.decode(data);
  if (change.nodeId === 0n) throw new InvalidRequestError("a configuration change of the member 0");
  let member: Member | undefined;
  try {
    member = memberOf(change);
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid(error.message);
    throw error;
  }
  // A promotion contains no URLs.
  if (member !== undefined && member.peerUrls.length > 0) checkUrls(member.peerUrls);
  return change.id;
}

function invalid(problem: string): InvalidRequestError {
  return new InvalidRequestError(`the configuration change does not decode: ${problem}`);
}
