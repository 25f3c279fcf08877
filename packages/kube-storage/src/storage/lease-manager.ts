/**
 * Leases for objects with a time to live (apiserver: pkg/storage/etcd3/lease_manager.go). Objects
 * that expire at about the same time share a lease, because a lease costs as much as a write. Only
 * the latest lease is reused: all objects of a resource have the same time to live.
 */

/** @returns the lease's id */
export type GrantLease = (ttlSeconds: number) => Promise<bigint>;

export interface LeaseLimits {
  /** A lease is reused for so long, or for 5 % of the time to live if that is shorter. */
  readonly reuseSeconds: number;
  /** Objects of one lease; their deletion is one transaction of the cluster. */
  readonly maxObjects: number;
}

/** As kube-apiserver's --lease-reuse-duration-seconds. */
const DEFAULT_LIMITS: LeaseLimits = { reuseSeconds: 60, maxObjects: 1000 };
const REUSE_SHARE = 0.05;

export class LeaseManager {
  readonly #grant: GrantLease;
  readonly #nowMs: () => number;
  readonly #limits: LeaseLimits;
  #latest: { readonly lease: Promise<bigint>; readonly endMs: number } | undefined;
  #objects = 0;

  /** @param nowMs monotonic */
  constructor(grant: GrantLease, nowMs: () => number, limits = DEFAULT_LIMITS) {
    this.#grant = grant;
    this.#nowMs = nowMs;
    this.#limits = limits;
  }

  /** A lease that lives at least `ttlSeconds`, and little longer. Rejects as `grant` does. */
  leaseFor(ttlSeconds: number): Promise<bigint> {
    const now = this.#nowMs();
    const reuseSeconds = Math.min(Math.floor(REUSE_SHARE * ttlSeconds), this.#limits.reuseSeconds);
    const endMs = now + ttlSeconds * 1000;
    const latest = this.#latest;
    // Each request counts, also where the write then fails.
    this.#objects++;
    if (
      latest !== undefined &&
      endMs < latest.endMs &&
      endMs + reuseSeconds * 1000 > latest.endMs &&
      this.#objects <= this.#limits.maxObjects
    )
      return latest.lease;
    const lease = this.#grant(ttlSeconds + reuseSeconds);
    const granted = { lease, endMs: endMs + reuseSeconds * 1000 };
    this.#latest = granted;
    this.#objects = 1;
    lease.catch(() => {
      if (this.#latest === granted) this.#latest = undefined;
    });
    return lease;
  }
}
