/** The world, as a member needs it: what it is started with besides its configuration. */
import type { Clock, Disk, KeyspaceOpener, Logger, Names, Random } from "@quorate/host";
import type { Raft } from "@quorate/raft";
import type { Sha256, Store } from "@quorate/store";
import type { PeerCall, Transport, TransportListener } from "@quorate/transport";
import type { ApplyLimits } from "./apply/applier.ts";
import type { MemberBounds } from "./bounds.ts";
import type { Secrets } from "./identity/access-control.ts";
import type { FaultHook } from "./loop/fault-points.ts";
import type { LogMemory } from "./loop/limits.ts";
import type { LinkQuestions } from "./membership/index.ts";
import type { OpenRegistry } from "./membership/token-discovery.ts";
import type { MemberMetrics } from "./metrics/member-metrics.ts";
import type { MemberObserver } from "./observer.ts";
import type { AnswerLimits } from "./reads/answer-memory.ts";
import type { SliceLimits } from "./reads/slices.ts";
import type { WatchLimits } from "./watch/index.ts";

/** A transport that is opened when the rest of the member is there. */
export interface MemberTransport extends Transport {
  /** Opens the listen addresses; rejects where one cannot be opened. */
  listen(): Promise<unknown>;
}

/** What the transport is made from. */
export interface TransportRequest {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly listener: TransportListener;
  readonly metrics: MemberMetrics;
  readonly questions: LinkQuestions;
}

/** The world, as a member needs it. */
export interface MemberDeps {
  readonly clock: Clock;
  /** What leases' time is counted by, for tests that move it alone; the clock if absent. */
  readonly leaseClock?: Clock | undefined;
  readonly random: Random;
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
  readonly logger: Logger;
  readonly faults?: FaultHook | undefined;
  /** Sees the machine of this run before it does anything, for simulations that look into it. */
  readonly onRaft?: ((raft: Raft) => void) | undefined;
  /**
   * Size of a segment of the log in bytes, a multiple of 8, for tests and simulations that want
   * small ones.
   */
  readonly walSegmentBytes?: number | undefined;
  /**
   * True for a member that forms a cluster of members of etcd, whose rules it follows: for
   * simulations.
   */
  readonly followsEtcd?: boolean | undefined;
  /** How applying is cut into slices, for tests and simulations that want many. */
  readonly applyLimits?: ApplyLimits | undefined;
  /** How much is done at a time and waits, for simulations that want to meet it. */
  readonly bounds?: MemberBounds | undefined;
  /** Bounds of watch, for tests and simulations that want to meet them. */
  readonly watchLimits?: WatchLimits | undefined;
  /** Bounds of reads that run in slices, for tests and simulations that want to meet them. */
  readonly sliceLimits?: SliceLimits | undefined;
  /** What answers may take of the memory while they are built. */
  readonly answerLimits?: AnswerLimits | undefined;
  /** What proposals and the log may take of the memory. */
  readonly logMemory?: LogMemory | undefined;
  /** StoreOptions.sha256. */
  readonly sha256?: (() => Sha256) | undefined;
  /** For passwords and tokens; without it none are taken or made. */
  readonly secrets?: Secrets | undefined;
  /** Makes the transport; nothing is opened, and its listener not called, before `listen`. */
  makeTransport(request: TransportRequest): MemberTransport;
  /**
   * Asks other members over their peer ports; without it, what only the leader can answer is
   * answered on the leader alone.
   */
  readonly callPeer?: PeerCall | undefined;
  /**
   * The transaction that goes before the end of a lease, for an API that keeps more by a lease than
   * the keys attached to it; undefined where there is none.
   */
  readonly beforeRevoke?: ((store: Store, lease: bigint) => Uint8Array | undefined) | undefined;
  /** For --discovery-srv. */
  readonly names?: Names | undefined;
  /** For --discovery-endpoints. */
  readonly openRegistry?: OpenRegistry | undefined;
  readonly observer?: MemberObserver | undefined;
  /**
   * The member has stopped by itself: it cannot go on (an error), or it was removed from the
   * cluster (undefined).
   */
  onEnd(error: unknown): void;
}
