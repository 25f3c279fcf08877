/**
 * The records of the bucket meta: where the state stands in the log, and what kind of state it is.
 * Numbers are 8 bytes, big-endian; names without "quorate" are etcd's.
 *
 *     consistent_index, term     of the last entry that the state holds
 *     confState                  raftpb.ConfState at that entry
 *     quorate_live_bytes         the index again, and the sum of the sizes of records
 *     quorate_storage_version    the version of the records
 *     quorate_follows_etcd       empty; there only if entries are applied by etcd's rules
 *
 * Every batch of the backend has the position and the sum (mvcc has records of its own here).
 */
import {
  CodedError,
  EMPTY,
  fromUtf8,
  raftpb,
  readU64BE,
  toHex,
  WireError,
  writeU64BE,
} from "@quorate/proto";
import { type Backend, Bucket, type LiveSizes } from "./backend.ts";
import { StoreDamageError } from "./errors.ts";

const CONSISTENT_INDEX = fromUtf8("consistent_index");
const TERM = fromUtf8("term");
const CONF_STATE = fromUtf8("confState");

/** The position of the state in the log: the last entry, and the configuration at that entry. */
export interface Position {
  readonly index: number;
  readonly term: number;
  readonly confState: raftpb.ConfState;
}

function u64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, value);
  return bytes;
}

/**
 * Reads the position with `get`; index 0 if none was ever written. @param path the store's
 * directory, for error texts
 */
export function readPosition(
  get: (key: Uint8Array) => Uint8Array | undefined,
  path: string,
): Position {
  const index = get(CONSISTENT_INDEX);
  const term = get(TERM);
  const confState = get(CONF_STATE);
  if (index === undefined && term === undefined && confState === undefined) {
    return { index: 0, term: 0, confState: raftpb.ConfState.create() };
  }
  try {
    if (index?.length !== 8 || term?.length !== 8 || confState === undefined)
      throw new RangeError("a record is missing or has a wrong size");
    return {
      index: readU64BE(index),
      term: readU64BE(term),
      confState: raftpb.ConfState.decode(confState),
    };
  } catch (error) {
    if (error instanceof WireError || error instanceof RangeError)
      throw new StoreDamageError(path, "bucket meta", error.message);
    throw error;
  }
}

/**
 * Puts the position into the batch that is being collected.
 * @param writtenConf the configuration in the batches before, which is not written again
 */
export function writePosition(
  backend: Backend,
  { index, term, confState }: Position,
  writtenConf?: raftpb.ConfState,
): void {
  backend.put(Bucket.meta, CONSISTENT_INDEX, u64(index));
  backend.put(Bucket.meta, TERM, u64(term));
  if (confState !== writtenConf)
    backend.put(Bucket.meta, CONF_STATE, raftpb.ConfState.encode(confState));
}

/** The record's name in the bucket meta. */
export const LIVE_BYTES: Uint8Array = fromUtf8("quorate_live_bytes");
const LIVE_RECORD_BYTES = 16;
/** The byte of the bucket before each key. */
export const PREFIX_BYTES = 1;

/** The size that a record counts, by the lengths of its key (without the bucket) and its value. */
export function liveSizeBytes(keyLength: number, valueLength: number): number {
  return PREFIX_BYTES + keyLength + valueLength;
}

/**
 * The size in bytes of the store's records: the keys' history, and the leases. The space quota uses
 * it, and it falls as soon as compaction has dropped records, whatever the size of the files on
 * disk.
 *
 * The record is in every batch, so it is exact for the state after that batch. When the index is
 * rebuilt at open, the records are counted; another sum is damage. A record with another index than
 * the store's was left by a version that does not maintain it, and is ignored. It depends on the
 * progress of compaction, so it differs between members and is not hashed.
 */
export class LiveBytes {
  #bytes = 0;
  #records = 0;
  #written: LiveSizes | undefined;

  /** The sum over all records. */
  get bytes(): number {
    return this.#bytes;
  }

  /** As of the last batch, or of the start if there was none since. */
  get written(): LiveSizes {
    return this.#written ?? { records: this.#records, bytes: this.#bytes };
  }

  /** Adds a written record; returns its size, to be passed to `removed`. */
  added(key: Uint8Array, value: Uint8Array): number {
    const sizeBytes = liveSizeBytes(key.length, value.length);
    this.addedAll(sizeBytes, 1);
    return sizeBytes;
  }

  /** Adds records that were written together, by their sum of `liveSizeBytes`. */
  addedAll(sizeBytes: number, records: number): void {
    this.#bytes += sizeBytes;
    this.#records += records;
  }

  /** Subtracts a deleted record of this size. */
  removed(sizeBytes: number): void {
    this.#bytes -= sizeBytes;
    this.#records--;
  }

  /** Puts the sum into the batch that is being collected, for the state at `index`. */
  write(backend: Backend, index: number): void {
    const record = new Uint8Array(LIVE_RECORD_BYTES);
    writeU64BE(record, index, 0);
    writeU64BE(record, this.#bytes, 8);
    backend.put(Bucket.meta, LIVE_BYTES, record);
    this.#written = { records: this.#records, bytes: this.#bytes };
  }

  /**
   * Compares the sum counted at open with the stored one for `index`. @param path the store's
   * directory, for error texts @throws StoreDamageError
   */
  check(backend: Backend, index: number, path: string): void {
    const record = backend.get(Bucket.meta, LIVE_BYTES);
    if (record === undefined) return;
    const problem = (text: string) =>
      new StoreDamageError(path, "bucket meta, key quorate_live_bytes", text);
    if (record.length !== LIVE_RECORD_BYTES) throw problem(`the record has ${record.length} bytes`);
    const savedIndex = readU64BE(record, 0);
    // Every batch raises the position, with or without this record. If this record has a higher
    // index, the position is damaged.
    if (savedIndex > index)
      throw problem(
        `it is of index ${savedIndex}, and the store's position is ${index}: that was lost or changed`,
      );
    if (savedIndex < index) return;
    const saved = readU64BE(record, 8);
    if (saved !== this.#bytes)
      throw problem(
        `the records have ${this.#bytes} bytes, and ${saved} were written: records were lost or changed`,
      );
  }
}

/**
 * The version that this release writes, and the highest that it reads. A release that changes the
 * records so that an earlier one would misread them raises it, and reads all lower ones.
 *
 *     0   no such record: data of 0.1.0 before this record existed; opening it writes version 1
 *     1   the same records
 */
export const STORAGE_VERSION = 1;

const VERSION = fromUtf8("quorate_storage_version");

/** A store that a later release has written. Nothing was changed. */
export class StorageVersionError extends CodedError<"NewerRelease"> {
  /** The version of the data. */
  readonly version: number;

  constructor(path: string, version: number) {
    super(
      "StorageVersionError",
      "NewerRelease",
      `${path}: the data has storage version ${version}, and this release reads up to ` +
        `${STORAGE_VERSION}: a later release has written it. Nothing was changed. Start the ` +
        "member with that release again; or remove it from the cluster (quoratectl member remove), " +
        `move its data directory away, and add it again (quoratectl member add); or restore a ` +
        "backup that this release made",
    );
    this.version = version;
  }
}

/**
 * The version of the data, 0 without a record.
 * @param path the store's directory, for error texts
 * @throws StorageVersionError for a version above STORAGE_VERSION, StoreDamageError
 */
export function readStorageVersion(
  get: (key: Uint8Array) => Uint8Array | undefined,
  path: string,
): number {
  const record = get(VERSION);
  if (record === undefined) return 0;
  const [high, next = 0] = record;
  const isNumber = record.length === 8 && high === 0 && next < 0x20;
  if (!isNumber) {
    const place = "bucket meta, key quorate_storage_version";
    throw new StoreDamageError(path, place, `${toHex(record)} is not a version`);
  }
  const version = readU64BE(record);
  if (version > STORAGE_VERSION) throw new StorageVersionError(path, version);
  return version;
}

/** Puts this release's version into the batch that is being collected. */
export function writeStorageVersion(backend: Backend): void {
  backend.put(Bucket.meta, VERSION, u64(STORAGE_VERSION));
}

const FOLLOWS_ETCD = fromUtf8("quorate_follows_etcd");

/**
 * Whether a store follows etcd's rules where Quorate has others: its state comes from a cluster
 * with members of etcd, and all members have to apply each entry alike. It stays so: the members of
 * etcd may come back.
 */
export function readFollowsEtcd(get: (key: Uint8Array) => Uint8Array | undefined): boolean {
  return get(FOLLOWS_ETCD) !== undefined;
}

/** Puts the record into the batch that is being collected. */
export function writeFollowsEtcd(backend: Backend): void {
  backend.put(Bucket.meta, FOLLOWS_ETCD, EMPTY);
}
