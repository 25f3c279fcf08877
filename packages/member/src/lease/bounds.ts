/** What bounds the work on leases; docs/reference/limits.md lists it. */
import { MAX_CHECKPOINT_LEASES } from "@quorate/store";
import { MAX_BATCH_LEASES } from "./renew-batches.ts";

export interface LeaseBounds {
  /** Expired leases that are revoked in a second as a rule. */
  readonly maxRevokesPerSecond: number;
  /**
   * And at the most. When many leases end at one time, the locks of clients that are gone would be
   * held for minutes at the rate above; so it doubles with each look that leaves some waiting, as
   * long as the cluster keeps up, and halves again with each that does not.
   */
  readonly maxHurriedRevokesPerSecond: number;
  /** Revocations whose result is awaited at the most. */
  readonly maxInflightRevokes: number;
  /** Checkpoint entries whose result is awaited at the most, and the leases in one of them. */
  readonly maxInflightCheckpoints: number;
  readonly maxCheckpointLeases: number;
  /**
   * Revocations that are proposed in one turn of the event loop; the others of the same look follow
   * in the next turns.
   */
  readonly maxRevokesPerTurn: number;
  /** Leases that are looked at in one turn, and found to be renewed meanwhile or due. */
  readonly maxLooksPerTurn: number;
  /** Renewals in one request to the leader; no member takes more than MAX_BATCH_LEASES. */
  readonly maxBatchLeases: number;
  /** Requests with renewals on their way at a time. */
  readonly maxInflightBatches: number;
  /** Renewals that wait for a request of theirs. */
  readonly maxWaitingRenewals: number;
}

export const LEASE_BOUNDS: LeaseBounds = {
  // etcd: defaultLeaseRevokeRate.
  maxRevokesPerSecond: 1000,
  maxHurriedRevokesPerSecond: 10_000,
  maxInflightRevokes: 5000,
  maxInflightCheckpoints: 8,
  maxCheckpointLeases: MAX_CHECKPOINT_LEASES,
  maxRevokesPerTurn: 256,
  // Some 2 ms.
  maxLooksPerTurn: 2048,
  maxBatchLeases: MAX_BATCH_LEASES,
  maxInflightBatches: 4,
  maxWaitingRenewals: 200_000,
};
