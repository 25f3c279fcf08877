/**
 * Entries, and the log of them in memory: all after the snapshot mark, whether written to disk or
 * not.
 *
 *     snapshotIndex     applied    applying     committed        lastIndex
 *          |               |           |            |                |
 *      ....+---------------+-----------+------------+----------------+
 *                                         |               |
 *                                       stable        handedOut
 *          |  as bytes     |  as objects: the recent ones      |
 *
 * `stable` moves only when the driver reports a write as durable, `handedOut` when a Ready takes
 * entries to be written. A new leader may replace entries after `committed`. Replaced entries that
 * were already handed out must be written again, and the report of the old write no longer counts
 * for them: each pending write keeps its own mark, which a replacement lowers.
 */
import { defined, EMPTY, raftpb } from "@quorate/proto";
import { AppliedEntries } from "./applied-entries.ts";
import type { InitialState } from "./interface.ts";
import { violated } from "./invariants.ts";

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

/**
 * The index up to which the log is known to be committed. Throws RAFT-1 if the state is incoherent.
 */
function checkedCommit(initial: InitialState): number {
  const { snapshot, hardState, applied } = initial;
  let index = snapshot.index;
  let term = snapshot.term;
  let lastConfChange = 0;
  let provenCommit = Math.max(hardState.commit, applied);
  for (const entry of initial.entries) {
    if (entry.index !== index + 1 || entry.term < term) {
      violated(
        "RAFT-1",
        `entry ${entry.index} of term ${entry.term} follows ${index} of term ${term}`,
      );
    }
    index = entry.index;
    term = entry.term;
    if (!isConfChange(entry)) continue;
    // A configuration change is proposed only after the previous one is applied, so each proves
    // that the one before is committed. The hard state with that commit index may be lost, for it
    // is written after the entries. Without this, the member could campaign with a configuration
    // that is two changes old, whose majorities need not overlap with the current one's.
    provenCommit = Math.max(provenCommit, lastConfChange);
    lastConfChange = index;
  }
  if (applied < snapshot.index || applied > index)
    violated("RAFT-1", `applied ${applied}, log ${snapshot.index} to ${index}`);
  if (hardState.commit > index)
    violated("RAFT-1", `commit ${hardState.commit}, last entry ${index}`);
  return provenCommit;
}

/**
 * A pending write: once it is durable, the log is stable up to `last`, which is lowered when
 * entries are replaced meanwhile.
 */
interface PendingWrite {
  readonly number: number;
  last: number;
  /** Index of the snapshot in this write, 0 if there is none. */
  readonly snapshotIndex: number;
}

/** Entries that were handed out together to be applied. */
interface ApplyBatch {
  readonly last: number;
  readonly bytes: number;
}

/** An index with the term of the entry there, 0 where that is unknown. */
export interface EntryId {
  readonly index: number;
  readonly term: number;
}

export class RaftLog {
  /** Those from the snapshot mark to `#recentAfter`, all applied. */
  readonly #kept = new AppliedEntries();
  /** Those after `#recentAfter`, all but those that a received snapshot will bring not applied. */
  #recent: raftpb.Entry[];
  #recentAfter: number;
  #snapshot: raftpb.SnapshotMetadata;
  #committed: number;
  #applying: number;
  #applied: number;
  #stable: number;
  #handedOut: number;
  readonly #writes: PendingWrite[] = [];
  #lastWriteNumber = 0;
  /** A received snapshot that is not yet durable. */
  #pendingSnapshot: raftpb.Snapshot | undefined = undefined;
  #snapshotHandedOut = false;
  readonly #maxApplyingBytes: number;
  #applyingBytes = 0;
  readonly #applyBatches: ApplyBatch[] = [];

  /**
   * Builds the log from the state on disk. @param maxApplyingBytes bounds the entries that are
   * handed out and not yet reported as applied.
   */
  constructor(initial: InitialState, maxApplyingBytes: number) {
    const { snapshot, applied } = initial;
    const last = snapshot.index + initial.entries.length;
    this.#recent = [...initial.entries];
    this.#recentAfter = snapshot.index;
    this.#snapshot = snapshot;
    this.#committed = checkedCommit(initial);
    this.#applying = applied;
    this.#applied = applied;
    this.#stable = last;
    this.#handedOut = last;
    this.#maxApplyingBytes = maxApplyingBytes;
    this.#keepTo(applied);
  }

  /** The mark the log starts after; index 0 if it was never compacted. */
  get snapshot(): raftpb.SnapshotMetadata {
    return this.#snapshot;
  }

  get firstIndex(): number {
    return this.#snapshot.index + 1;
  }

  get lastIndex(): number {
    return this.#recentAfter + this.#recent.length;
  }

  get lastTerm(): number {
    return this.#termAt(this.lastIndex);
  }

  get committed(): number {
    return this.#committed;
  }

  get applied(): number {
    return this.#applied;
  }

  /** The log is durable on this member up to this index. */
  get stable(): number {
    return this.#stable;
  }

  /** True from the arrival of a snapshot until it is durable and installed. */
  get snapshotPending(): boolean {
    return this.#pendingSnapshot !== undefined || this.#applied < this.#snapshot.index;
  }

  /** The term at an index from the snapshot mark to the end; undefined for others. */
  term(index: number): number | undefined {
    const at = index - this.#recentAfter;
    if (at > 0) return at <= this.#recent.length ? this.#recent[at - 1].term : undefined;
    if (index <= this.#snapshot.index)
      return index === this.#snapshot.index ? this.#snapshot.term : undefined;
    return this.#kept.termAt(index);
  }

  /** True if an entry, or the snapshot mark, has this index and term. */
  matches(index: number, term: number): boolean {
    return this.term(index) === term;
  }

  /**
   * True if a log that ends in (index, term) is at least as up-to-date as this one (paper, section
   * 5.4.1).
   */
  isUpToDate(index: number, term: number): boolean {
    const ours = this.lastTerm;
    return term > ours || (term === ours && index >= this.lastIndex);
  }

  /** Entries from lo to hi, both included; none for lo = hi + 1. */
  slice(lo: number, hi: number): raftpb.Entry[] {
    if (lo < this.firstIndex || hi > this.lastIndex || lo > hi + 1) {
      violated("RAFT-5", `entries ${lo} to ${hi} of ${this.firstIndex} to ${this.lastIndex}`);
    }
    const after = this.#recentAfter;
    if (lo > after) return this.#recent.slice(lo - after - 1, hi - after);
    const entries: raftpb.Entry[] = [];
    for (let index = lo; index <= hi; index++) {
      entries.push(index > after ? this.#recent[index - after - 1] : this.#kept.entryAt(index));
    }
    return entries;
  }

  /** Entries from lo, as many as fit into maxBytes but at least one; none if lo is past the end. */
  collect(lo: number, maxBytes: number): raftpb.Entry[] {
    if (lo > this.lastIndex) return [];
    if (lo < this.firstIndex)
      violated("RAFT-5", `entries from ${lo}, the first is ${this.firstIndex}`);
    return this.slice(lo, this.#fitting(lo, this.lastIndex, maxBytes));
  }

  /** The last index, at least lo, such that the entries from lo to it fit into maxBytes. */
  #fitting(lo: number, hi: number, maxBytes: number): number {
    let bytes = this.#entryBytesAt(lo);
    let last = lo;
    while (last < hi && (bytes += this.#entryBytesAt(last + 1)) <= maxBytes) last++;
    return last;
  }

  #entryBytesAt(index: number): number {
    return this.dataBytes(index, index) + ENTRY_OVERHEAD_BYTES;
  }

  /** Appends at the end, on a leader: replaces nothing. */
  append(entries: readonly raftpb.Entry[]): void {
    if (entries.length > 0 && entries[0].index <= this.lastIndex)
      violated("RAFT-19", `entry ${entries[0].index} replaces one`);
    this.#push(entries, 0);
  }

  /**
   * Appends on a follower: if the log has (prevIndex, prevTerm), appends the new entries, replaces
   * those that conflict, and commits up to leaderCommit but not beyond `entries`. Returns the index
   * of the last of `entries`, or undefined if the predecessor does not match. Needs prevIndex >=
   * committed.
   */
  tryAppend(
    prevIndex: number,
    prevTerm: number,
    entries: readonly raftpb.Entry[],
    leaderCommit: number,
  ): number | undefined {
    if (!this.matches(prevIndex, prevTerm)) return undefined;
    const last = prevIndex + entries.length;
    let known = 0;
    while (known < entries.length && this.matches(entries[known].index, entries[known].term))
      known++;
    if (known < entries.length) {
      this.#truncate(prevIndex + known);
      this.#push(entries, known);
    }
    this.commitTo(Math.min(leaderCommit, last));
    return last;
  }

  /** Drops entries after `keep`. */
  #truncate(keep: number): void {
    if (keep >= this.lastIndex) return;
    if (keep < this.#committed)
      violated("RAFT-3", `entry ${keep + 1} of ${this.#committed} committed ones`);
    this.#recent.length = keep - this.#recentAfter;
    this.#pullBack(keep);
    this.#handedOut = Math.min(this.#handedOut, keep);
  }

  /** Marks everything after `keep` as not durable, in pending writes too. */
  #pullBack(keep: number): void {
    this.#stable = Math.min(this.#stable, keep);
    for (const write of this.#writes) write.last = Math.min(write.last, keep);
  }

  #push(entries: readonly raftpb.Entry[], from: number): void {
    let index = this.lastIndex;
    let term = this.lastTerm;
    for (let i = from; i < entries.length; i++) {
      const entry = entries[i];
      if (entry.index !== index + 1 || entry.term < term) {
        violated(
          "RAFT-4",
          `entry ${entry.index} of term ${entry.term} after ${index} of term ${term}`,
        );
      }
      index = entry.index;
      term = entry.term;
      this.#recent.push(entry);
    }
  }

  /**
   * The highest index, not above `index`, at which this log may match another one of which only
   * (index, term) is known: the term there is not above `term`. Below the snapshot mark the term is
   * unknown and 0.
   */
  findConflict(index: number, term: number): EntryId {
    if (index > this.lastIndex || index < this.#snapshot.index) return { index, term: 0 };
    if (this.#snapshot.term > term) return { index: this.#snapshot.index - 1, term: 0 };
    // Terms do not fall along the log, so this is a binary search. The term at lo is never above
    // `term`.
    let lo = this.#snapshot.index;
    let hi = index;
    while (lo < hi) {
      const mid = lo + Math.ceil((hi - lo) / 2);
      if (this.#termAt(mid) <= term) lo = mid;
      else hi = mid - 1;
    }
    return { index: lo, term: this.#termAt(lo) };
  }

  #termAt(index: number): number {
    return defined(this.term(index), "the term of an entry in the log");
  }

  /** Moves the commit index up to index; a lower one changes nothing. */
  commitTo(index: number): void {
    if (index <= this.#committed) return;
    if (index > this.lastIndex) violated("RAFT-2", `commit ${index}, last entry ${this.lastIndex}`);
    this.#committed = index;
  }

  /** Bytes of data in entries from lo to hi, both included. */
  dataBytes(lo: number, hi: number): number {
    const after = this.#recentAfter;
    let bytes = 0;
    for (let index = lo; index <= hi; index++) {
      bytes +=
        index > after ? this.#recent[index - after - 1].data.length : this.#kept.dataBytesAt(index);
    }
    return bytes;
  }

  /** True if a configuration change is committed but not yet reported as applied. */
  hasUnappliedConfChange(): boolean {
    const committed = this.#committed - this.#recentAfter;
    for (let i = 0; i < committed; i++) if (isConfChange(this.#recent[i])) return true;
    return false;
  }

  /** Restarts the log after a received snapshot, whose index is above committed. */
  restore(snapshot: raftpb.Snapshot): void {
    // Drops the old entries. Some may lie after the new mark; a pending write must not count as
    // durable for the entries that follow it.
    this.#pullBack(this.#committed);
    this.#kept.dropTo(this.#recentAfter);
    this.#recent = [];
    this.#recentAfter = snapshot.metadata.index;
    this.#snapshot = snapshot.metadata;
    this.#committed = snapshot.metadata.index;
    this.#applying = snapshot.metadata.index;
    this.#handedOut = snapshot.metadata.index;
    this.#pendingSnapshot = snapshot;
    this.#snapshotHandedOut = false;
  }

  /**
   * Drops entries up to index from memory and moves the mark there. Does nothing for an index at or
   * below the mark.
   */
  compact(index: number, confState: raftpb.ConfState): void {
    if (index <= this.#snapshot.index) return;
    if (index > this.#applied) violated("RAFT-8", `compact to ${index}, applied ${this.#applied}`);
    const term = this.#termAt(index);
    this.#kept.dropTo(index);
    this.#snapshot = { index, term, confState };
  }

  /** True if takeWrites would return something. */
  hasWrites(): boolean {
    return (
      this.#handedOut < this.lastIndex ||
      (this.#pendingSnapshot !== undefined && !this.#snapshotHandedOut)
    );
  }

  /**
   * The entries and the snapshot that were not handed out yet. @param number of the Ready that
   * takes them; rises with each call.
   */
  takeWrites(number: number): { entries: raftpb.Entry[]; snapshot: raftpb.Snapshot | undefined } {
    const snapshot = this.#snapshotHandedOut ? undefined : this.#pendingSnapshot;
    const entries =
      this.#handedOut < this.lastIndex ? this.slice(this.#handedOut + 1, this.lastIndex) : [];
    this.#handedOut = this.lastIndex;
    this.#lastWriteNumber = number;
    if (snapshot !== undefined) this.#snapshotHandedOut = true;
    if (entries.length > 0 || snapshot !== undefined) {
      this.#writes.push({
        number,
        last: this.lastIndex,
        snapshotIndex: snapshot?.metadata.index ?? 0,
      });
    }
    return { entries, snapshot };
  }

  /** The writes of the Readys up to this number are durable. */
  persisted(number: number): void {
    if (number > this.#lastWriteNumber)
      violated("RAFT-7", `Ready ${number}, the last was ${this.#lastWriteNumber}`);
    while (this.#writes.length > 0 && this.#writes[0].number <= number) {
      const write = this.#writes.shift()!;
      this.#stable = Math.max(this.#stable, write.last);
      if (
        this.#pendingSnapshot !== undefined &&
        write.snapshotIndex === this.#pendingSnapshot.metadata.index
      )
        this.#pendingSnapshot = undefined;
    }
  }

  /** The highest index that may be handed out to be applied. */
  #appliable(): number {
    return Math.min(this.#committed, this.#stable);
  }

  /** True if takeCommitted would return something. */
  hasCommitted(): boolean {
    if (this.#applying >= this.#appliable()) return false;
    if (this.#applyingBytes === 0) return true;
    const nextBytes = this.#entryBytesAt(this.#applying + 1);
    return this.#applyingBytes + nextBytes <= this.#maxApplyingBytes;
  }

  /**
   * Committed, durable entries that were not handed out yet, up to the bound on bytes being
   * applied.
   */
  takeCommitted(): raftpb.Entry[] {
    if (!this.hasCommitted()) return [];
    const entries = this.slice(
      this.#applying + 1,
      this.#fitting(
        this.#applying + 1,
        this.#appliable(),
        this.#maxApplyingBytes - this.#applyingBytes,
      ),
    );
    let bytes = 0;
    for (const entry of entries) bytes += entryBytes(entry);
    this.#applying += entries.length;
    this.#applyingBytes += bytes;
    this.#applyBatches.push({ last: this.#applying, bytes });
    return entries;
  }

  /**
   * Everything up to index is applied, or installed from a snapshot. Does nothing for a lower index
   * than before.
   */
  appliedTo(index: number): void {
    if (index > this.#applying)
      violated("RAFT-6", `applied ${index}, handed out ${this.#applying}`);
    if (index <= this.#applied) return;
    this.#applied = index;
    this.#keepTo(index);
    while (this.#applyBatches.length > 0 && this.#applyBatches[0].last <= index) {
      this.#applyingBytes -= this.#applyBatches.shift()?.bytes ?? 0;
    }
  }

  /** Keeps what is applied, up to `index`, as bytes; nothing where a snapshot is beyond it. */
  #keepTo(index: number): void {
    if (index <= this.#recentAfter) return;
    for (const entry of this.#recent.splice(0, index - this.#recentAfter)) this.#kept.add(entry);
    this.#recentAfter = index;
  }
}
