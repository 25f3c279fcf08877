/** Errors of the storage (apiserver: pkg/storage/errors.go). */

export type StorageErrorCode =
  | "KeyNotFound"
  | "KeyExists"
  | "ResourceVersionConflicts"
  | "InvalidObj"
  | "Unreachable"
  | "Timeout"
  | "CorruptObj"
  | "TooOldResourceVersion"
  | "TooLargeResourceVersion"
  | "InvalidContinueToken";

/** An operation that failed; interpretStorageError makes the client's StatusError of it. */
export class StorageError extends Error {
  readonly code: StorageErrorCode;
  readonly key: string;
  readonly resourceVersion: number;

  constructor(code: StorageErrorCode, key: string, message: string, resourceVersion = 0) {
    super(message);
    this.name = "StorageError";
    this.code = code;
    this.key = key;
    this.resourceVersion = resourceVersion;
  }
}
