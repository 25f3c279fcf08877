/** What the keeper of leases (keeper.ts) needs from the outside. */
import type { Clock, Logger } from "@quorate/host";
import type { MemberDeps } from "../deps.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { Reads } from "../loop/reads.ts";
import type { StoreRef } from "../reads/store-ref.ts";

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
  readonly store: StoreRef;
  readonly reads: Pick<Reads, "wait">;
  readonly proposals: Pick<Proposals, "proposeInTerm">;
  /**
   * The transaction that must be applied before a lease is revoked: what ends with its keys, and is
   * not attached to it. Undefined for most leases.
   */
  readonly beforeRevoke?: MemberDeps["beforeRevoke"];
}
