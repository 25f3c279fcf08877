/** What the keeper of leases (keeper.ts) needs from the outside. */
import type { Clock, Logger } from "@quorate/host";
import type { AppliedEntry, Lessor } from "@quorate/store";

export interface KeeperOptions {
  /** The least time to live in seconds; a lease from a time with a lower minimum has it too. */
  readonly minTtlSeconds: number;
  /** What a new leader adds: the election timeout. */
  readonly extendMs: number;
  /** For so long a confirmation of the leadership serves renewals; less than `extendMs`. */
  readonly confirmedForMs: number;
  /** How often what is left of a lease is noted in the log; undefined for never. */
  readonly checkpointIntervalMs: number | undefined;
}

export interface KeeperCounters {
  readonly renewed: { add(): void };
  readonly expired: { add(): void };
}

export interface KeeperDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counters: KeeperCounters;
  lessor(): Lessor;
  /**
   * Resolves when a quorum has confirmed the leader since the call, and all it had committed by
   * then is applied here; rejects otherwise.
   */
  confirm(): Promise<void>;
  /**
   * Proposes requests as leader of `term`, in this turn or not at all. A promise for each; it
   * rejects if the result does not come.
   */
  propose(
    term: number,
    kind: "leaseRevoke" | "leaseCheckpoint" | "txn",
    requests: readonly Uint8Array[],
  ): readonly Promise<AppliedEntry>[];
  /**
   * The transaction that must be applied before a lease is revoked: what ends with its keys, and is
   * not attached to it. Undefined for most leases.
   */
  beforeRevoke?(id: bigint): Uint8Array | undefined;
}
