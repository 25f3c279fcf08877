/**
 * The version of the records of a store. A release that changes them so that an earlier one would
 * misread them raises STORAGE_VERSION, and reads all lower ones.
 *
 *     bucket meta: "quorate_storage_version" 8 bytes big-endian
 *
 *     0   no such record: data of 0.1.0 before this record existed; opening it writes version 1
 *     1   the same records
 */
import { CodedError, fromUtf8, readU64BE, toHex, writeU64BE } from "@quorate/proto";
import { type Backend, Bucket } from "./backend.ts";
import { StoreDamageError } from "./errors.ts";

/** The version that this release writes, and the highest that it reads. */
export const STORAGE_VERSION = 1;

const RECORD = fromUtf8("quorate_storage_version");

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
  const record = get(RECORD);
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
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, STORAGE_VERSION);
  backend.put(Bucket.meta, RECORD, bytes);
}
