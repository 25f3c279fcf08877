/** What the loop works with: its parts from the beginning, its handlers from the start on. */
import type { Clock, Logger } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { Transport } from "@quorate/transport";
import type { Wal } from "@quorate/wal";
import type { Applier } from "../apply/applier.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { FaultHook } from "./fault-points.ts";
import type { LeaderView } from "./leader-view.ts";
import type { Proposals } from "./proposals.ts";
import type { Reads } from "./reads.ts";

/** What the loop works with. */
export interface LoopParts<R> {
  readonly raft: Raft;
  readonly wal: Wal;
  readonly transport: Transport;
  readonly proposals: Proposals<R>;
  readonly reads: Reads;
  readonly leader: LeaderView;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MemberMetrics;
  readonly faults: FaultHook;
  /** The member cannot go on. Called once. */
  fatal(error: unknown): void;
}

/** The rest of the member, which is built after its loop and works from its start on. */
export interface LoopHandlers {
  /**
   * Applies committed entries in order. Where it has to wait for the store, the loop is woken when
   * that is over.
   */
  readonly applier: Applier;
  /** Marks in the log that a snapshot was accepted; durable when it resolves. */
  saveSnapshot(snapshot: raftpb.Snapshot): Promise<void>;
  /** Puts the received store of a saved snapshot in place; durable when it resolves. */
  install(snapshot: raftpb.Snapshot): Promise<void>;
  /** Streams the state to the peer that a MsgSnap is for. */
  sendSnapshot(message: raftpb.Message): void;
  leaderChanged(): void;
  /** Raft has refused a message as one that no member sends. */
  refused(message: raftpb.Message, reason: string): void;
}
