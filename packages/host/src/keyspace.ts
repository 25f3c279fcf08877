/**
 * An ordered key-value file store, as the backend sees it: LevelDB in a member (host/node), a map
 * with crash rules in the simulator. Keys are ordered by their bytes.
 */

/** One change of a batch: a value to put, or undefined to delete. */
export interface KeyspaceWrite {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
}

/** A range of keys: from `from` (included) to `to` (excluded); an absent end is open. */
export interface KeyspaceRange {
  readonly from?: Uint8Array | undefined;
  readonly to?: Uint8Array | undefined;
}

/** A record as a scan gives it. */
export type KeyspaceRecord = readonly [key: Uint8Array, value: Uint8Array];

/** A view of the whole keyspace at one moment. It must be closed. */
export interface KeyspaceSnapshot {
  /**
   * Records in key order, in slices of up to about `sliceBytes` (256 KiB unless told), so that a
   * long scan yields to the loop.
   */
  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]>;
  close(): Promise<void>;
}

/** An open keyspace. After a failed write it must be closed and opened again. */
export interface Keyspace {
  /** The value of `key`, or undefined. Blocks; microseconds when cached. */
  get(key: Uint8Array): Uint8Array | undefined;
  /** The values of `keys` in their order; one trip for all. */
  getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]>;
  /**
   * Writes all or nothing, durable (synced) when the promise resolves. Later writes for the same
   * key in one batch win. A long batch is read in slices over several turns of the event loop, so
   * what it yields must not change before the promise settles.
   */
  write(batch: Iterable<KeyspaceWrite>): Promise<void>;
  /** As KeyspaceSnapshot.scan, on the state at the time of the call. */
  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]>;
  snapshot(): KeyspaceSnapshot;
  /**
   * Rewrites the range so that deleted records give their space back. Other calls go on meanwhile.
   */
  compact(range: KeyspaceRange): Promise<void>;
  /** Bytes on disk, all files of the store. */
  sizeOnDiskBytes(): number;
  close(): Promise<void>;
}

/**
 * Opens keyspaces by folder. `create: false` refuses one that is not there (DiskError NotFound).
 * Damage and a lock held elsewhere are DiskErrors ("Damaged", "Locked").
 */
export interface KeyspaceOpener {
  open(path: string, options: { create: boolean }): Promise<Keyspace>;
}
