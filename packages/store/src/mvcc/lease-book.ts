/** What keys need of leases: to know whether one exists, and to tell it which keys hang on it. */

/** Keys are latin1 strings; lease ids are not 0n. */
export interface LeaseBook {
  exists(id: bigint): boolean;
  /** The lease that the key hangs on; 0n for none. */
  leaseOf(key: string): bigint;
  /**
   * The key hangs on the lease from now on. Also told at open of every key that is there with a
   * lease.
   */
  attach(id: bigint, key: string): void;
  /** The key no longer hangs on the lease. */
  detach(id: bigint, key: string): void;
  /**
   * An entry begins that is applied in several turns: until `endLong` nobody else sees which keys
   * it attaches and detaches.
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
