/**
 * Ids for proposals, unique in the cluster while they matter: 2 bytes of the member's id, 5 bytes
 * of its start time in milliseconds, 1 byte and carry of count (the layout of etcd's pkg/idutil).
 */
/** Lease ids that a server chooses are positive int64. */
const MAX_LEASE_ID = 2n ** 63n - 1n;

export class RequestIds {
  readonly #prefix: bigint;
  #suffix: bigint;

  /**
   * @param startWallMs wall time at which this run of the member began, so that a restarted member
   * does not repeat its ids.
   */
  constructor(memberId: bigint, startWallMs: number) {
    this.#prefix = (memberId & 0xffffn) << 48n;
    this.#suffix = (BigInt(Math.trunc(startWallMs)) & 0xff_ffff_ffffn) << 8n;
  }

  /**
   * An id for a lease whose client has none in mind: a positive int64 (etcd:
   * EtcdServer.LeaseGrant).
   */
  nextLeaseId(): bigint {
    return this.next() & MAX_LEASE_ID;
  }

  next(): bigint {
    this.#suffix = (this.#suffix + 1n) & 0xffff_ffff_ffffn;
    return this.#prefix | this.#suffix;
  }
}
