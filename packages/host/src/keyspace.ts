/**
 * An ordered key-value store for the backend: LevelDB in a member (host/node), an in-memory fake
 * with crash semantics in the simulator. Keys are ordered by their bytes.
 */

/**
 * One change of a batch: a value to put, or undefined to delete. Object and bytes may be used again
 * for the next change that the batch yields.
 */
export interface KeyspaceWrite {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
}

/** A change that may be kept when the batch yields the next one. */
export function keptWrite({ key, value }: KeyspaceWrite): KeyspaceWrite {
  return { key: key.slice(), value: value?.slice() };
}

/** A range of keys: from `from` (included) to `to` (excluded); an absent end is open. */
export interface KeyspaceRange {
  readonly from?: Uint8Array | undefined;
  readonly to?: Uint8Array | undefined;
}

/** A record of a scan. */
export type KeyspaceRecord = readonly [key: Uint8Array, value: Uint8Array];

/** A view of the keyspace at one moment. Close it after use. */
export interface KeyspaceSnapshot {
  /**
   * Records in key order, in slices of up to about `sliceBytes` (default 256 KiB), so that a long
   * scan yields to the event loop.
   */
  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]>;
  close(): Promise<void>;
}

/** An open keyspace. After a failed write, close and reopen it. */
export interface Keyspace {
  /** The value of `key`, or undefined. Blocks; microseconds when cached. */
  get(key: Uint8Array): Uint8Array | undefined;
  /** The values of `keys` in their order, in one call. */
  getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]>;
  /**
   * Writes a batch atomically; durable (synced) when the promise resolves. The last write of a key
   * in a batch wins. A long batch is consumed over several turns of the event loop, so its content
   * must not change before the promise settles.
   */
  write(batch: Iterable<KeyspaceWrite>): Promise<void>;
  /** As KeyspaceSnapshot.scan, on the state at the time of the call. */
  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]>;
  snapshot(): KeyspaceSnapshot;
  /**
   * Rewrites the range to release the space of deleted records. Other calls continue meanwhile.
   */
  compact(range: KeyspaceRange): Promise<void>;
  /**
   * Moves what is in memory into tables, so that LevelDB's tables alone hold all of the keyspace
   * until the next write. Does nothing where there are no tables.
   */
  settle(): Promise<void>;
  /** Bytes on disk of all files of the store. */
  sizeOnDiskBytes(): number;
  close(): Promise<void>;
}

/**
 * Opens keyspaces by directory. `create: false` refuses a missing one (DiskError NotFound).
 * Damage and a lock held elsewhere are DiskErrors ("Damaged", "Locked").
 */
export interface KeyspaceOpener {
  open(path: string, options: { create: boolean }): Promise<Keyspace>;
}
