/** The results of the machine: data, never effects. */
import type { raftpb } from "@quorate/proto";

export type Role = "follower" | "pre-candidate" | "candidate" | "leader";

/** A member's view of leadership; not written to disk. `leader` is 0n when unknown. */
export interface SoftState {
  readonly leader: bigint;
  readonly role: Role;
}

/**
 * A read may run once the state machine has applied up to index. `context` is the one passed to
 * readIndex.
 */
export interface ReadState {
  readonly context: Uint8Array;
  readonly index: number;
}

/**
 * The work of one turn. Several may be in progress, but their writes go to disk, and their
 * committed entries to the state machine, in the order of their numbers.
 *
 * Order of records within one write: snapshot, entries, hardState. So whatever prefix of it
 * survives a crash is coherent.
 */
export interface Ready {
  /** Grows by one with each Ready. */
  readonly number: number;
  /** Set if it changed. */
  readonly softState: SoftState | undefined;
  /** To write; set if it changed. */
  readonly hardState: raftpb.HardState | undefined;
  /**
   * To write. The first may have an index that was written before: it replaces that entry and all
   * after it.
   */
  readonly entries: readonly raftpb.Entry[];
  /**
   * The write must be durable before persisted(number) is called. If false, only the commit index
   * changed. Losing that is harmless while a quorum remembers it; a driver whose members leave when
   * their removal is committed has to see to that.
   */
  readonly mustSync: boolean;
  /**
   * Received from the leader: to save (durable with this Ready), and to install before any
   * `committed` of this or a later Ready.
   */
  readonly snapshot: raftpb.Snapshot | undefined;
  /** To send at once: a leader's messages do not wait for its own disk. */
  readonly messages: readonly raftpb.Message[];
  /**
   * To send when this Ready and all before it are durable: votes, vote requests and
   * acknowledgements.
   */
  readonly messagesAfterSync: readonly raftpb.Message[];
  /** To apply, in order. All are durable on this member. */
  readonly committed: readonly raftpb.Entry[];
  /** Reads that were confirmed. */
  readonly readStates: readonly ReadState[];
}
