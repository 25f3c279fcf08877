/**
 * The state as etcd's snapshot file, for etcd's tools and members: a bbolt database (package bolt)
 * with etcd's buckets, and its SHA-256 in the last 32 bytes. It is generated while it is sent, in
 * two passes over one view of the backend: to measure, and to write. Only the second one reads the
 * keys of a large store, whose records are counted.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import {
  type BoltBucket,
  type BoltCursor,
  type BoltRecord,
  type BucketSizes,
  boltOutput,
} from "@quorate/bolt";
import type { KeyspaceRecord } from "@quorate/host";
import { CodedError, EMPTY, type raftpb } from "@quorate/proto";
import { type BackendSnapshot, Bucket } from "../backend/backend.ts";
import { PREFIX_BYTES } from "../backend/meta.ts";
import { TOMBSTONE_BYTES } from "../backend/revision.ts";
import type { TableRecords } from "../level-files/records.ts";
import { FILE_BUCKETS, metaForFile } from "./schema.ts";

/** Bytes of the SHA-256 at the end of a snapshot file. */
export const CHECKSUM_BYTES = 32;

/** Bytes that are measured, or written, in one turn of the event loop. */
const SLICE_BYTES: number = 64 << 10;

/** From so many bytes of records on, the bucket key is not measured before it is written. */
const LEAST_COUNTED_BYTES: number = 4 << 20;

/** A snapshot file to be sent. It must be closed. */
export interface EtcdSnapshot {
  /** The database's length, without the checksum after it. */
  readonly databaseBytes: number;
  /** The version of etcd whose file it is, such as "3.7.0"; empty for 3.5. */
  readonly storageVersion: string;
  /** The database's bytes, and the checksum as the last chunk, if any; to be called once. */
  chunks(): AsyncGenerator<Uint8Array>;
  close(): Promise<void>;
}

/** The caller left while the snapshot was measured. */
export class SnapshotAbandonedError extends CodedError<"Abandoned"> {
  constructor() {
    super("SnapshotAbandonedError", "Abandoned", "the caller cancelled the snapshot");
  }
}

async function* withoutValues(
  records: AsyncIterable<readonly BoltRecord[]>,
): AsyncGenerator<readonly BoltRecord[]> {
  for await (const slice of records) yield slice.map(([key]) => [key, EMPTY]);
}

/** A SHA-256 that is computed bit by bit. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
}

export interface ExportOptions {
  /** The version written into the file; none for etcd 3.5. */
  readonly storageVersion: string | undefined;
  /** Whether the file goes on in this cluster, and not in a new one. */
  readonly isOfCluster?: boolean | undefined;
  /** Whether a checksum follows the database; it does by default. */
  readonly hasChecksum?: boolean | undefined;
  /** Called while the file is measured; false ends that with a SnapshotAbandonedError. */
  readonly isWanted: () => boolean;
  readonly sha256?: (() => Sha256) | undefined;
}

/** The records of the bucket key in the files of their tables, as a bolt file takes them. */
class KeyCursor implements BoltCursor {
  readonly #records: TableRecords;
  readonly #isWanted: () => boolean;
  readonly keyStart = 1;

  constructor(records: TableRecords, isWanted: () => boolean) {
    this.#records = records;
    this.#isWanted = isWanted;
  }

  next(): boolean {
    return this.#records.next();
  }

  refill(): Promise<boolean> {
    if (!this.#isWanted()) throw new SnapshotAbandonedError();
    return this.#records.refill();
  }

  get key(): Uint8Array {
    return this.#records.record.key;
  }

  get keyEnd(): number {
    return this.#records.keyLength;
  }

  get bytes(): Uint8Array {
    return this.#records.record.bytes;
  }

  get valueStart(): number {
    return this.#records.record.valueStart;
  }

  get valueEnd(): number {
    return this.#records.record.valueEnd;
  }
}

/**
 * What the bucket key has at most: keys and leases are counted together. Undefined for a small
 * store, whose file would be larger by the pages that are reserved.
 */
function countedSizes({ live }: BackendSnapshot): BucketSizes | undefined {
  if (live.bytes < LEAST_COUNTED_BYTES) return undefined;
  const { records } = live;
  return { records, bytes: live.bytes - records * PREFIX_BYTES, keyBytes: TOMBSTONE_BYTES };
}

/** Measures the file for a view. @throws SnapshotAbandonedError */
export async function exportEtcdFile(
  snapshot: BackendSnapshot,
  confState: raftpb.ConfState,
  { storageVersion, isOfCluster, hasChecksum, isWanted, sha256: native }: ExportOptions,
): Promise<EtcdSnapshot> {
  const meta: BoltRecord[] = [];
  for await (const slice of snapshot.scan(Bucket.meta)) meta.push(...slice);
  const metaRecords = metaForFile(meta, confState, storageVersion);
  async function* wanted(
    records: AsyncIterable<KeyspaceRecord[]>,
  ): AsyncGenerator<readonly BoltRecord[]> {
    for await (const slice of records) {
      if (!isWanted()) throw new SnapshotAbandonedError();
      yield slice;
    }
  }
  async function* only(records: readonly BoltRecord[]): AsyncGenerator<readonly BoltRecord[]> {
    yield records;
  }
  const buckets = Object.entries(FILE_BUCKETS).map(([name, bucket]): BoltBucket => {
    if (name === "meta") return { name, scan: () => only(metaRecords) };
    if (name === "cluster" && isOfCluster !== true) return { name, scan: () => only([]) };
    if (name === "alarm")
      return {
        name,
        scan: () => withoutValues(wanted(snapshot.scan(bucket, undefined, undefined, SLICE_BYTES))),
      };
    const { tables } = snapshot;
    const read =
      name === "key" && tables !== undefined
        ? () => new KeyCursor(tables.records(), isWanted)
        : undefined;
    const scan = () => wanted(snapshot.scan(bucket, undefined, undefined, SLICE_BYTES));
    return { name, scan, read, sizes: name === "key" ? countedSizes(snapshot) : undefined };
  });
  const output = await boltOutput(buckets);
  return {
    databaseBytes: output.sizeBytes,
    storageVersion: storageVersion ?? "",
    async *chunks() {
      if (hasChecksum === false) {
        yield* output.chunks();
        return;
      }
      const hash = native?.() ?? sha256.create();
      for await (const chunk of output.chunks()) {
        hash.update(chunk);
        yield chunk;
      }
      yield hash.digest();
    },
    close: () => snapshot.close(),
  };
}
