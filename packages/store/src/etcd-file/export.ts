/**
 * The state as etcd's snapshot file, for whoever has etcd's tools: a bbolt database (package bolt)
 * with etcd's buckets, and its SHA-256 in the last 32 bytes. It is made while it is sent, from one
 * view of the backend that is read twice: to measure, and to write.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { type BoltBucket, type BoltRecord, boltOutput } from "@quorate/bolt";
import type { KeyspaceRecord } from "@quorate/host";
import { EMPTY, type raftpb } from "@quorate/proto";
import { type BackendSnapshot, Bucket } from "../backend.ts";
import { FILE_BUCKETS, metaForFile } from "./schema.ts";

/** Bytes of the SHA-256 at the end of a snapshot file. */
export const CHECKSUM_BYTES = 32;

/** What is measured, or written, in one turn of the event loop. */
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

/** The caller has lost interest while the snapshot was measured. */
export class SnapshotAbandonedError extends Error {
  constructor() {
    super("nobody waits for the snapshot any more");
    this.name = "SnapshotAbandonedError";
  }
}

async function* withoutValues(
  records: AsyncIterable<readonly BoltRecord[]>,
): AsyncGenerator<readonly BoltRecord[]> {
  for await (const slice of records) yield slice.map(([key]) => [key, EMPTY]);
}

/**
 * Measures the file of a view.
 * @param isWanted asked from time to time while it measures; false ends that with a
 * SnapshotAbandonedError
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
