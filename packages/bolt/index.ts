/**
 * bbolt's file format, in which etcd stores data and snapshots: a streaming writer, and a reader
 * that validates everything.
 */
export { BoltDamageError } from "./src/errors.ts";
export { MAX_KEY_BYTES, PAGE_BYTES } from "./src/format.ts";
export { scanLeaves } from "./src/leaf-scan.ts";
export { BoltFile } from "./src/reader.ts";
export type { BucketSizes } from "./src/reserve.ts";
export { type BoltBucket, type BoltCursor, type BoltRecord, boltOutput } from "./src/writer.ts";
