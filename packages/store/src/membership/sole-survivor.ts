/**
 * --force-new-cluster and "quoratectl recover": a member whose others are lost goes on alone.
 * Entries at the end of its log take the others out of the membership, and make it a voter if it is
 * a learner; they count as committed, as does all before them. (etcd: NewConfigChangeEntries. It
 * drops what is not known to be committed; here that stays, because it may have been acknowledged:
 * no member is left that could have decided otherwise.)
 */
import { raftpb } from "@quorate/proto";
import { encodeChangeContext } from "./member.ts";
import type { Membership } from "./membership.ts";

const { ConfChangeAddLearnerNode, ConfChangeAddNode, ConfChangeRemoveNode } = raftpb.ConfChangeType;

/** What the survivor has. */
export interface SurvivorState {
  readonly memberId: bigint;
  /** As of `appliedIndex`. */
  readonly membership: Membership;
  readonly appliedIndex: number;
  readonly entries: readonly raftpb.Entry[];
  /** Of the log's last entry, and the present term. */
  readonly lastIndex: number;
  readonly term: number;
}

/** What the log of a survivor gets at its end. */
export interface SoleSurvivor {
  readonly hardState: raftpb.HardState;
  readonly entries: readonly raftpb.Entry[];
}

/**
 * What makes a member the only one of its cluster, once it is in its log.
 * @param last the log's last entry, or the snapshot at which it begins
 * @returns undefined if by its own log this is no member of the cluster
 */
export function soleSurvivor(
  member: Pick<SurvivorState, "memberId" | "membership" | "appliedIndex" | "entries">,
  { term, vote }: raftpb.HardState,
  last: { readonly index: number; readonly term: number },
): SoleSurvivor | undefined {
  const present = Math.max(term, last.term);
  const entries = survivorEntries({ ...member, lastIndex: last.index, term: present });
  if (entries === undefined) return undefined;
  const commit = last.index + entries.length;
  return {
    hardState: { term: present, vote: present === term ? vote : 0n, commit },
    entries,
  };
}

/**
 * The entries to put at the end of the log. Undefined if this member itself has been removed: there
 * is nothing to go on with.
 */
export function survivorEntries(state: SurvivorState): raftpb.Entry[] | undefined {
  const { membership, memberId } = state;
  /** Whether each member is a learner. */
  const learners = new Map(membership.members().map((member) => [member.id, member.isLearner]));
  for (const entry of state.entries) {
    if (entry.index <= state.appliedIndex || entry.type !== raftpb.EntryType.EntryConfChange)
      continue;
    const change = raftpb.ConfChange.decode(entry.data);
    if (change.type === ConfChangeRemoveNode) learners.delete(change.nodeId);
    else if (change.type === ConfChangeAddNode) learners.set(change.nodeId, false);
    else if (change.type === ConfChangeAddLearnerNode && !learners.has(change.nodeId))
      learners.set(change.nodeId, true);
  }
  const isLearner = learners.get(memberId);
  if (isLearner === undefined) return undefined;
  const changes: Partial<raftpb.ConfChange>[] = [];
  if (isLearner) {
    const member = { id: memberId, name: "", peerUrls: [], clientUrls: [], isLearner: false };
    changes.push({
      type: ConfChangeAddNode,
      nodeId: memberId,
      context: encodeChangeContext({ member, isPromote: true }),
    });
  }
  for (const id of learners.keys())
    if (id !== memberId) changes.push({ type: ConfChangeRemoveNode, nodeId: id });
  return changes.map((change, i) => ({
    type: raftpb.EntryType.EntryConfChange,
    term: state.term,
    index: state.lastIndex + 1 + i,
    data: raftpb.ConfChange.encode(raftpb.ConfChange.create(change)),
  }));
}
