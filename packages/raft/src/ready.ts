/** What the machine answers with: data, never effects. */
import type { raftpb } from "@quorate/proto";

export type Role = "follower" | "pre-candidate" | "candidate" | "leader";

/**
 * What a member believes about leadership; not written to disk. leader is 0n when none is known.
 */
export interface SoftState {
  readonly leader: bigint;
  readonly role: Role;
}

/**
 * A read may run once the state machine has applied up to index. context is the one given to
 * readIndex.
 */
export interface ReadState {
  readonly context: Uint8Array;
  readonly index: number;
}

/**
 * The work of one turn. Several may be out at once, but their writes go to disk, and their
 * committed entries to the state machine, in the order of their numbers.
 *
 * Order of records within one write: snapshot, entries, hardState. So whatever prefix of it
 * survives a crash is coherent.
 */
export interface Ready {
  /** Grows by one with each Ready. */
  readonly number: number;
  /** Given when it changed. */
  readonly softState: SoftState | undefined;
  /** To write; given when it changed. */
  readonly hardState: raftpb.HardState | undefined;
  /**
   * To write. The first may have an index that was written before: it and all after it are then
   * replaced.
   */
  readonly entries: readonly raftpb.Entry[];
  /**
   * The write must reach the disk before persisted(number) is called. Else only the commit index
   * changed, and losing it is harmless.
   */
  readonly mustSync: boolean;
  /**
   * Received from the leader: to save (durable with this Ready) and to install before any
   * `committed` of this or a later Ready.
   */
  readonly snapshot: raftpb.Snapshot | undefined;
  /** To send at once: what a leader sends does not wait for its own disk. */
  readonly messages: readonly raftpb.Message[];
  /**
   * To send when this Ready and all before it are durable: votes, vote requests and
   * acknowledgements.
   */
  readonly messagesAfterSync: readonly raftpb.Message[];
  /** To apply, in order. All are durable here. */
  readonly committed: readonly raftpb.Entry[];
  /** Reads that were confirmed. */
  readonly readStates: readonly ReadState[];
}
