/** The interface of keys to leases: which leases exist, and which keys are attached to them. */

/** Keys are latin1 strings; lease ids are not 0n. */
export interface LeaseBook {
  exists(id: bigint): boolean;
  /** The lease that the key is attached to; 0n for none. */
  leaseOf(key: string): bigint;
  /** Attaches the key to the lease. Also called at open for every key with a lease. */
  attach(id: bigint, key: string): void;
  /** Detaches the key from the lease. */
  detach(id: bigint, key: string): void;
  /**
   * An entry begins that is applied in several turns: until `endLong` other readers do not see
   * which keys it attaches and detaches.
   */
  beginLong(): void;
  endLong(): void;
}

/** No lease exists: every put with one is refused with LeaseNotFound. */
export const noLeases: LeaseBook = {
  exists: () => false,
  leaseOf: () => 0n,
  attach: () => {},
  detach: () => {},
  beginLong: () => {},
  endLong: () => {},
};
