/**
 * Members talking to members. The real implementation speaks HTTP/2 (transport/node), the simulated
 * one stands in sim.
 *
 * Delivery is best effort and Raft lives with that: messages may be lost, repeated by a sender, or
 * come out of order across a reconnect. What a transport does promise: a message arrives whole and
 * unchanged or not at all, and `send` never blocks and never holds more than its bounds.
 */
import type { raftpb } from "@quorate/proto";

/**
 * How a state stands in bytes: "quorate" as the records of a store, "etcd" as a database file of
 * etcd.
 */
export type SnapshotForm = "quorate" | "etcd";

/** A snapshot on its way: the raft message that announces it, and the state's bytes in order. */
export interface SnapshotStream {
  readonly message: raftpb.Message;
  readonly body: AsyncIterable<Uint8Array>;
  /** "quorate" if undefined. */
  readonly form?: SnapshotForm | undefined;
}

/** A snapshot to be sent. */
export interface OutgoingSnapshot extends SnapshotStream {
  /**
   * The same state for a member of etcd, in the form "etcd"; `body` is not read then. Undefined
   * where there is none: such a member is sent nothing.
   */
  readonly forEtcd?: (() => Promise<SnapshotStream>) | undefined;
}

/** What a transport hands to its member. None of these may throw. */
export interface TransportListener {
  /** Messages from one peer, in the order it sent them. */
  received(messages: readonly raftpb.Message[]): void;
  /**
   * A peer sends a snapshot. Reads the body to its end; the promise says whether all of it was
   * taken over (rejects otherwise).
   */
  snapshotReceived(stream: SnapshotStream): Promise<void>;
  /**
   * Messages for this peer are being lost: Raft falls back to probing it. Called at most once for
   * each failed connection or full queue.
   */
  unreachable(id: bigint): void;
  /** A snapshot that `sendSnapshot` was given has been taken over by the peer, or not. */
  snapshotSent(id: bigint, taken: boolean): void;
}

/** How one peer's link stands. */
export interface PeerStatus {
  readonly id: bigint;
  readonly urls: readonly string[];
  /** Since when the link is up, in monotonic milliseconds, or undefined while it is down. */
  readonly activeSinceMs: number | undefined;
  /** The last round-trip time in milliseconds, or undefined before the first. */
  readonly roundTripMs: number | undefined;
}

export interface Transport {
  /**
   * Sends messages to the peers that their `to` names, as one write for each peer. Unknown peers
   * are skipped.
   */
  send(messages: readonly raftpb.Message[]): void;
  /**
   * Streams a snapshot on a connection of its own, so that it never delays other messages. Ends in
   * `snapshotSent`, also where the peer is removed meanwhile.
   */
  sendSnapshot(snapshot: OutgoingSnapshot): void;
  addPeer(id: bigint, urls: readonly string[]): void;
  updatePeer(id: bigint, urls: readonly string[]): void;
  /** Drops the link, its queue and its snapshots. */
  removePeer(id: bigint): void;
  peers(): readonly PeerStatus[];
  close(): Promise<void>;
}
