/**
 * The state as etcd's snapshot file, for etcd's tools: a bbolt database (package bolt) with etcd's
 * buckets, and its SHA-256 in the last 32 bytes. It is generated while it is sent, in two passes
 * over one view of the backend: to measure, and to write.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { type BoltBucket, type BoltRecord, boltOutput } from "@quorate/bolt";
import type { KeyspaceRecord } from "@quorate/host";
import { CodedError, EMPTY, type raftpb } from "@quorate/proto";
import { type BackendSnapshot, Bucket } from "../backend.ts";
import { FILE_BUCKETS, metaForFile } from "./schema.ts";

/** Bytes of the SHA-256 at the end of a snapshot file. */
export const CHECKSUM_BYTES = 32;

/** Bytes that are measured, or written, in one turn of the event loop. */
const SLICE_BYTES: number = 64 << 10;

/** A snapshot file to be sent. It must be closed. */
export interface EtcdSnapshot {
  /** The database's length, without the checksum after it. */
  readonly databaseBytes: number;
  /** The version of etcd whose file it is, such as "3.7.0". */
  readonly storageVersion: string;
  /** The database's bytes, and the checksum as the last chunk; to be called once. */
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

/**
 * Measures the file for a view. @param isWanted called from time to time while it measures; false
 * ends that with a SnapshotAbandonedError
 */
export async function exportEtcdFile(
  snapshot: BackendSnapshot,
  confState: raftpb.ConfState,
  storageVersion: string,
  isWanted: () => boolean,
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
    if (name === "cluster") return { name, scan: () => only([]) };
    if (name === "alarm")
      return {
        name,
        scan: () => withoutValues(wanted(snapshot.scan(bucket, undefined, undefined, SLICE_BYTES))),
      };
    return { name, scan: () => wanted(snapshot.scan(bucket, undefined, undefined, SLICE_BYTES)) };
  });
  const output = await boltOutput(buckets);
  return {
    databaseBytes: output.sizeBytes,
    storageVersion,
    async *chunks() {
      const hash = sha256.create();
      for await (const chunk of output.chunks()) {
        hash.update(chunk);
        yield chunk;
      }
      yield hash.digest();
    },
    close: () => snapshot.close(),
  };
}
