/** What keys need of leases: to know whether one exists, and to tell it which keys hang on it. */

/** Keys are latin1 strings; lease ids are not 0n. */
export interface LeaseBook {
  exists(id: bigint): boolean;
  /** The key hangs on the lease from now on. Also told at open of every key that is there with a lease. */
  attach(id: bigint, key: string): void;
  /** The key no longer hangs on the lease. */
  detach(id: bigint, key: string): void;
}

/** No lease exists: every put with one is refused with LeaseNotFound. */
export const noLeases: LeaseBook = {
  exists: () => false,
  attach: () => {},
  detach: () => {},
};
