/** Errors of the storage (apiserver: pkg/storage/errors.go). */
import { CodedError } from "@quorate/proto";

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

/** An operation that failed; interpretStorageError makes the client's ApiError of it. */
export class StorageError extends CodedError<StorageErrorCode> {
  readonly key: string;
  readonly resourceVersion: number;

  constructor(code: StorageErrorCode, key: string, message: string, resourceVersion = 0) {
    super("StorageError", code, message);
    this.key = key;
    this.resourceVersion = resourceVersion;
  }
}
