/** Recording a continuous backup of a running cluster, and object stores to keep it in. */
export { writeBackupMetrics } from "./metrics-file.ts";
export { type BackupStatus, Recorder, type RecorderDeps } from "./recorder.ts";
export type { S3Credentials } from "./s3-signature.ts";
export { type S3Options, S3Store } from "./s3-store.ts";
export { parseSealingKey, SealedStore } from "./sealed-store.ts";
