/**
 * The backend: etcd's buckets on one ordered keyspace (LevelDB in a member).
 *
 *     key in the keyspace = 1 byte of bucket + the bucket's own key
 *
 *     bucket           prefix  keys                                     values
 *     meta             m       names below                              as said there
 *     key              k       revision: 17 bytes, 't' for a tombstone  mvccpb.KeyValue
 *     lease            l       lease id, 8 bytes big-endian             leasepb.Lease
 *     auth             a       names                                    authpb
 *     authUsers        u       user name                                authpb.User
 *     authRoles        r       role name                                authpb.Role
 *     members          M       member id in hexadecimal                 JSON
 *     members_removed  R       member id in hexadecimal                 "removed"
 *     cluster          c       "clusterVersion"                         version text
 *     alarm            A       member id and kind, encoded AlarmMember  empty
 *
 * Changes collect in memory, where reads see them, and are written as one synced write batch that
 * also holds the consistent index. The keyspace on disk is therefore always exactly the state at
 * some index, and the WAL replays from there. While a batch is being written, new changes collect
 * in a second buffer; reads look in the new buffer, then in the batch being written, then on disk.
 *
 * An entry that is applied in several turns of the event loop stages its changes: they are separate
 * from the others until `commitStaged`, so that a batch written in between holds nothing of the
 * entry.
 *
 * Bound: the server flushes every 100 ms and every 10,000 changes (or as configured). A batch that
 * is being written delays the next, so at most two batches are in memory, and `isFull` makes the
 * server wait with applying. One entry may exceed the bound of a batch.
 */
import type { Keyspace, KeyspaceRecord, KeyspaceSnapshot, KeyspaceWrite } from "@quorate/host";
import { defined, fromLatin1, type KeyValue, toLatin1 } from "@quorate/proto";
import type { OpenFiles, TableFiles } from "../level-files/records.ts";
import { STORE_BOUNDS } from "./bounds.ts";
import { assert } from "./invariants.ts";
import { RevisionRecords } from "./revision.ts";

/** The prefix byte of each bucket. */
export const Bucket = {
  meta: 0x6d,
  key: 0x6b,
  lease: 0x6c,
  auth: 0x61,
  authUsers: 0x75,
  authRoles: 0x72,
  members: 0x4d,
  membersRemoved: 0x52,
  cluster: 0x63,
  alarm: 0x41,
} as const;
export type Bucket = (typeof Bucket)[keyof typeof Bucket];

/** A batch is written after this many changes at the latest (etcd's default batch limit). */
export const MAX_PENDING_OPS = 10_000;

function fullKey(bucket: Bucket, key: Uint8Array): string {
  return String.fromCharCode(bucket) + toLatin1(key);
}

/** The keyspace's key for a bucket's key. */
export function prefixed(bucket: number, key: Uint8Array): Uint8Array {
  const full = new Uint8Array(key.length + 1);
  full[0] = bucket;
  full.set(key, 1);
  return full;
}

/** The keys of a bucket in the keyspace. */
export function bucketRange(bucket: Bucket): {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
} {
  return { from: new Uint8Array([bucket]), to: new Uint8Array([bucket + 1]) };
}

function sliceOptions(sliceBytes: number | undefined): { sliceBytes?: number } {
  return sliceBytes === undefined ? {} : { sliceBytes };
}

/**
 * The value of a key in a set of changes; null if the set deletes it, undefined if it does not
 * contain it.
 */
function valueIn(set: ChangeSet | undefined, key: string): Uint8Array | null | undefined {
  const value = set?.changes.get(key);
  return value === undefined && set?.changes.has(key) === true ? null : value;
}

/**
 * The changes of a set as one batch, generated while it is read. Bulk records and those of the
 * bucket key come first, because a later change may replace or delete one of them.
 */
function* batchOf({ changes, bulk, records }: ChangeSet): Generator<KeyspaceWrite> {
  for (const many of bulk) yield* many;
  yield* records;
  for (const [key, value] of changes) yield { key: fromLatin1(key), value };
}

/** Records of keys and leases, and the sum of their sizes (LiveBytes). */
export interface LiveSizes {
  readonly records: number;
  readonly bytes: number;
}

/** A view of the backend as of one flush. It must be closed. */
export class BackendSnapshot {
  readonly #snapshot: KeyspaceSnapshot;
  /** The bucket key of the same state in the files of its tables, if it was asked for. */
  readonly tables: TableFiles | undefined;
  /** All records of keys and leases of this state. */
  readonly live: LiveSizes;

  constructor(snapshot: KeyspaceSnapshot, live: LiveSizes, tables?: TableFiles) {
    this.#snapshot = snapshot;
    this.live = live;
    this.tables = tables;
  }

  /**
   * The records of a bucket in key order, keys without the prefix; from `from` (included) to `to`
   * (excluded), in slices of about `sliceBytes` (default: the keyspace's own size).
   */
  async *scan(
    bucket: Bucket,
    from: Uint8Array = new Uint8Array(0),
    to?: Uint8Array,
    sliceBytes?: number,
  ): AsyncGenerator<KeyspaceRecord[]> {
    const range = {
      from: prefixed(bucket, from),
      to: to === undefined ? new Uint8Array([bucket + 1]) : prefixed(bucket, to),
    };
    for await (const slice of this.#snapshot.scan(range, sliceOptions(sliceBytes))) {
      yield slice.map(([key, value]) => [key.subarray(1), value] as const);
    }
  }

  /** All records of all buckets in key order, keys with their prefix. */
  scanAll(sliceBytes?: number): AsyncIterable<KeyspaceRecord[]> {
    return this.#snapshot.scan({}, sliceOptions(sliceBytes));
  }

  close(): Promise<void> {
    this.tables?.close();
    return this.#snapshot.close();
  }
}

export class Backend {
  readonly #keyspace: Keyspace;
  readonly #batchOps: number;
  readonly #pendingBytes: number;
  #active = new ChangeSet();
  #flushing: ChangeSet | undefined;
  /** The changes of the entry that is being applied in several turns. */
  #staged: ChangeSet | undefined;
  #flushed: Promise<void> = Promise.resolve();
  #failure: unknown;
  /**
   * Called right before a batch is written, to add the records that belong into every batch (the
   * consistent index).
   */
  beforeFlush: () => void = () => {};
  /** The records of keys and leases in the last batch's state; asked for each snapshot. */
  liveSizes: () => LiveSizes = () => ({ records: 0, bytes: 0 });
  #writtenRevision = 0;

  /**
   * @param batchOps a batch is due after so many changes; at least 1
   * @param pendingBytes StoreBounds.pendingBytes
   */
  constructor(
    keyspace: Keyspace,
    batchOps: number = MAX_PENDING_OPS,
    pendingBytes: number = STORE_BOUNDS.pendingBytes,
  ) {
    this.#keyspace = keyspace;
    this.#batchOps = batchOps;
    this.#pendingBytes = pendingBytes;
  }

  /** Changes that are not being written yet. */
  get pendingOps(): number {
    return this.#active.ops;
  }

  /** True when a write failed: every later flush rejects. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  get pendingBytes(): number {
    return this.#active.sizeBytes;
  }

  /**
   * True when a batch is being written and the next one has reached its bound: apply nothing more
   * until `flush` has resolved.
   */
  get isFull(): boolean {
    return this.#flushing !== undefined && this.isDue;
  }

  /**
   * True when work that can wait should wait: a batch is on its way, and half of the next one is
   * for those who cannot.
   */
  get isBusy(): boolean {
    return (
      this.#flushing !== undefined &&
      (this.#active.ops * 2 >= this.#batchOps || this.#active.sizeBytes * 2 >= this.#pendingBytes)
    );
  }

  /** True when the collected changes have reached the bound of a batch. */
  get isDue(): boolean {
    return this.#active.ops >= this.#batchOps || this.#active.sizeBytes >= this.#pendingBytes;
  }

  /**
   * The value of a key, changes in memory included; undefined if it does not exist. The bytes must
   * not be changed.
   */
  get(bucket: Bucket, key: Uint8Array): Uint8Array | undefined {
    const pending = this.#pending(bucket, key);
    return pending === undefined ? this.written(bucket, key) : (pending ?? undefined);
  }

  /**
   * The unwritten value of a key; null for an unwritten deletion, undefined if the key has no
   * unwritten change.
   */
  #pending(bucket: Bucket, key: Uint8Array): Uint8Array | null | undefined {
    if (
      this.#active.changes.size === 0 &&
      this.#flushing === undefined &&
      this.#staged === undefined
    )
      return undefined;
    const full = fullKey(bucket, key);
    let value = valueIn(this.#staged, full);
    if (value === undefined) value = valueIn(this.#active, full);
    return value === undefined ? valueIn(this.#flushing, full) : value;
  }

  /** The value of a key on disk, without unwritten changes. */
  written(bucket: Bucket, key: Uint8Array): Uint8Array | undefined {
    return this.#keyspace.get(prefixed(bucket, key));
  }

  /**
   * The values of keys on disk, without unwritten changes, in their order; read on another thread.
   */
  writtenMany(bucket: Bucket, keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return this.#keyspace.getMany(keys.map((key) => prefixed(bucket, key)));
  }

  /** Puts a record. The backend keeps `value`, which must not be changed afterwards. */
  put(bucket: Bucket, key: Uint8Array, value: Uint8Array): void {
    this.#active.set(fullKey(bucket, key), value);
  }

  /**
   * Puts the record of a change into the bucket key; revisions ascend.
   * @returns the length of the encoded record
   */
  putRecord(main: number, sub: number, tombstone: boolean, record: Partial<KeyValue>): number {
    return this.#active.records.add(main, sub, tombstone, record);
  }

  /** Like `putRecord`, but staged. */
  stageRecord(main: number, sub: number, tombstone: boolean, record: Partial<KeyValue>): number {
    return this.#open().records.add(main, sub, tombstone, record);
  }

  /** The encoded record that `putRecord`, or `stageRecord` while changes are staged, put last. */
  lastRecord(): Uint8Array {
    return (this.#staged ?? this.#active).records.last();
  }

  /**
   * The record of a change as putRecord and stageRecord put it; undefined if it waits for no batch.
   */
  waitingRecord(main: number, sub: number): Uint8Array | undefined {
    return (
      this.#staged?.records.find(main, sub) ??
      this.#active.records.find(main, sub) ??
      this.#flushing?.records.find(main, sub)
    );
  }

  delete(bucket: Bucket, key: Uint8Array): void {
    this.#active.set(fullKey(bucket, key), undefined);
  }

  /**
   * Adds bulk records to the batch that is being collected, before all changes in it. Deletions are
   * not visible to reads before they are on disk.
   */
  addBulk(records: BulkRecords): void {
    this.#active.addBulk(records);
  }

  /**
   * Begins to stage changes. Only one set can be staged at a time; closing the backend drops it.
   */
  stage(): void {
    assert(this.#staged === undefined, "STORE-8");
    this.#staged = new ChangeSet();
  }

  /** Like `put`, but staged: reads see it, batches do not contain it. */
  putStaged(bucket: Bucket, key: Uint8Array, value: Uint8Array): void {
    this.#open().set(fullKey(bucket, key), value);
  }

  /** Stages bulk records. They are not readable before they are on disk. */
  stageBulk(records: BulkRecords): void {
    this.#open().addBulk(records);
  }

  #open(): ChangeSet {
    return defined(this.#staged, "the set of staged changes");
  }

  /** Moves the staged changes into the batch that is being collected. */
  commitStaged(): void {
    this.#active.addAll(this.#open());
    this.#staged = undefined;
  }

  /**
   * Writes the collected changes as one synced batch; resolves when it, and any batch before it, is
   * durable. A failure is permanent: the keyspace's state is then unknown, and every later flush
   * rejects with the same error.
   */
  flush(): Promise<void> {
    this.#flushed = this.#flushed.then(() => this.#flushOnce());
    return this.#flushed;
  }

  async #flushOnce(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.beforeFlush();
    if (this.#active.ops === 0) return;
    assert(this.#flushing === undefined, "STORE-1");
    const set = this.#active;
    this.#flushing = set;
    this.#active = new ChangeSet();
    try {
      await this.#keyspace.write(batchOf(set));
    } catch (error) {
      this.#failure = error;
      throw error;
    }
    this.#flushing = undefined;
    this.#writtenRevision = Math.max(this.#writtenRevision, set.records.lastMain);
  }

  /** Records of transactions up to this revision are on the disk: none of them waits for it. */
  get writtenRevision(): number {
    return this.#writtenRevision;
  }

  /**
   * A view of the current state: flushes, then takes the snapshot before anything can change.
   * @param openTables opens the files of the tables, which then hold exactly that state; batches
   * wait meanwhile
   */
  async snapshot(openTables?: OpenFiles | undefined): Promise<BackendSnapshot> {
    if (openTables === undefined) {
      await this.flush();
      return new BackendSnapshot(this.#keyspace.snapshot(), this.liveSizes());
    }
    const taken = this.flush().then(async () => {
      await this.#keyspace.settle();
      return new BackendSnapshot(this.#keyspace.snapshot(), this.liveSizes(), openTables());
    });
    this.#flushed = taken.then(
      () => {},
      () => {},
    );
    return taken;
  }

  /**
   * Reclaims the space of deleted records of all buckets, in the background of the keyspace;
   * flushes first.
   */
  async compactAll(): Promise<void> {
    await this.flush();
    await this.#keyspace.compact({});
  }

  sizeOnDiskBytes(): number {
    return this.#keyspace.sizeOnDiskBytes();
  }

  /**
   * Flushes and closes. Without `flush` (a member that failed) unflushed changes are dropped; the
   * WAL still has them.
   */
  async close(options: { flush: boolean }): Promise<void> {
    try {
      if (options.flush && this.#failure === undefined) await this.flush();
      else await this.#flushed.catch(() => {});
    } finally {
      await this.#keyspace.close();
    }
  }
}

/** Changes by full key as latin1; undefined deletes. */
type Changes = Map<string, Uint8Array | undefined>;

/**
 * Bulk records, encoded when they are written. They are not readable before they are on disk, and
 * none of their keys is in the backend yet. They must not change once they are in the backend.
 */
export interface BulkRecords extends Iterable<KeyspaceWrite> {
  readonly count: number;
  /** Keys and values together. */
  readonly sizeBytes: number;
}

/** The changes for one batch, or of one entry. */
class ChangeSet {
  readonly changes: Changes = new Map();
  readonly bulk: BulkRecords[] = [];
  readonly records = new RevisionRecords(Bucket.key);
  #bulkOps = 0;
  #sizeBytes = 0;

  /** Number of records that are put or deleted. */
  get ops(): number {
    return this.changes.size + this.records.count + this.#bulkOps;
  }

  /** Bytes of keys and values, including values that a later change replaced. */
  get sizeBytes(): number {
    return this.#sizeBytes + this.records.sizeBytes;
  }

  /**
   * Puts a record, or deletes it if `value` is undefined. @param keyBytes the length of its key
   * without the bucket
   */
  set(fullKey: string, value: Uint8Array | undefined): void {
    this.changes.set(fullKey, value);
    this.#sizeBytes += fullKey.length - 1 + (value?.length ?? 0);
  }

  addBulk(records: BulkRecords): void {
    this.bulk.push(records);
    this.#bulkOps += records.count;
    this.#sizeBytes += records.sizeBytes;
  }

  /**
   * Adds all of `other`, which must not be used afterwards. Its changes are later than the existing
   * ones.
   */
  addAll(other: ChangeSet): void {
    for (const [key, value] of other.changes) this.changes.set(key, value);
    this.bulk.push(...other.bulk);
    this.records.addAll(other.records);
    this.#bulkOps += other.#bulkOps;
    this.#sizeBytes += other.#sizeBytes;
  }
}
