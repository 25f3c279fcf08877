/**
 * Entries: their sizes, the first entries of a new cluster, and the configuration changes they
 * carry.
 */
import { EMPTY, raftpb } from "@quorate/proto";

/**
 * Upper bound of the bytes that encoding adds to an entry's data: type, term, index, two lengths
 * and their tags.
 */
export const ENTRY_OVERHEAD_BYTES = 32;

/** The size of an entry wherever messages and windows are bounded in bytes. */
export function entryBytes(entry: raftpb.Entry): number {
  return entry.data.length + ENTRY_OVERHEAD_BYTES;
}

/** True for both kinds of configuration change. */
export function isConfChange(entry: raftpb.Entry): boolean {
  return (
    entry.type === raftpb.EntryType.EntryConfChange ||
    entry.type === raftpb.EntryType.EntryConfChangeV2
  );
}

/** The ConfChangeV2 that has the same effect as a ConfChange. */
export function toConfChangeV2(
  change: raftpb.ConfChange | raftpb.ConfChangeV2,
): raftpb.ConfChangeV2 {
  if ("changes" in change) return change;
  return {
    transition: 0,
    changes: [{ type: change.type, nodeId: change.nodeId }],
    context: change.context,
  };
}

/**
 * The change an entry carries, undefined for a normal entry. Throws WireError if its data is
 * malformed.
 */
export function confChangeOf(entry: raftpb.Entry): raftpb.ConfChangeV2 | undefined {
  if (entry.type === raftpb.EntryType.EntryConfChangeV2)
    return raftpb.ConfChangeV2.decode(entry.data);
  if (entry.type === raftpb.EntryType.EntryConfChange)
    return toConfChangeV2(raftpb.ConfChange.decode(entry.data));
  return undefined;
}

/** The type and data of the entry that carries a change. */
export function encodeConfChange(change: raftpb.ConfChange | raftpb.ConfChangeV2): {
  type: raftpb.EntryType;
  data: Uint8Array;
} {
  if ("changes" in change)
    return { type: raftpb.EntryType.EntryConfChangeV2, data: raftpb.ConfChangeV2.encode(change) };
  return { type: raftpb.EntryType.EntryConfChange, data: raftpb.ConfChange.encode(change) };
}

/**
 * The first entries of a new cluster's log: one ConfChangeAddNode for each member, term 1, in the
 * given order, as etcd writes them. Every member writes the same entries to its WAL and starts with
 * term 1 and a commit index equal to their number, so they are applied first.
 */
export function bootstrapEntries(
  peers: readonly { readonly id: bigint; readonly context: Uint8Array }[],
): raftpb.Entry[] {
  return peers.map((peer, i) => ({
    type: raftpb.EntryType.EntryConfChange,
    term: 1,
    index: i + 1,
    data: raftpb.ConfChange.encode({
      type: raftpb.ConfChangeType.ConfChangeAddNode,
      nodeId: peer.id,
      context: peer.context,
    }),
  }));
}

/** The entry that opens a new leader's term. */
export function emptyEntry(term: number, index: number): raftpb.Entry {
  return { type: raftpb.EntryType.EntryNormal, term, index, data: EMPTY };
}
