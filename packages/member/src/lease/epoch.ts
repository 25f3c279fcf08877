/** What the keeper of the leases' time knows of each lease, from an election to the next. */
import type { Deadlines, Due } from "./deadlines.ts";

/**
 * A lease whose time is counted. `dueMs` is when to look at it; a renewal leaves it behind where it
 * can.
 */
export interface LeaseTime extends Due {
  readonly id: bigint;
  readonly ttlSeconds: number;
  expiryMs: number;
  /** When to note what is left of it. */
  checkpoint: CheckpointDue | undefined;
  /** Checkpoints of what is left that may be in the log and were not taken back; counts up. */
  checkpoints: number;
  /** Callbacks of the requests that wait for its revocation. */
  waiters: (() => void)[] | undefined;
}

export interface CheckpointDue extends Due {
  readonly lease: LeaseTime;
}

/** The time from an election to the next. */
export interface Epoch {
  readonly term: number;
  readonly leases: Map<bigint, LeaseTime>;
  readonly expiries: Deadlines<LeaseTime>;
  readonly checkpoints: Deadlines<CheckpointDue>;
  readonly ended: Promise<void>;
  readonly end: () => void;
  /** The leases are being counted, or all are: what is granted counts from now on. */
  counting: boolean;
  /** All leases are counted. */
  promoted: boolean;
  /** When the last successful confirmation was requested. */
  confirmedMs: number;
  confirming: Promise<void> | undefined;
}

/** A lease whose time is counted, in one epoch. */
export interface CountedLease {
  /** @internal */
  readonly epoch: Epoch;
  /** @internal */
  readonly lease: LeaseTime;
}
