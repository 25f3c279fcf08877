/**
 * Files in the format of bbolt, which etcd keeps its data and its snapshots in: a streaming writer
 * and a distrustful reader.
 */
export { BoltDamageError } from "./src/errors.ts";
export { MAX_KEY_BYTES, MAX_VALUE_BYTES, PAGE_BYTES } from "./src/format.ts";
export { type ScannedPage, type ScannedRecord, scanLeaves } from "./src/leaf-scan.ts";
export { BoltFile } from "./src/reader.ts";
export { type BoltBucket, type BoltOutput, type BoltRecord, boltOutput } from "./src/writer.ts";
