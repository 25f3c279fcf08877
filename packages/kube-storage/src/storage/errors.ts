/**
 * Errors of the storage (apiserver: pkg/storage/errors.go). Their texts are Kubernetes', because
 * conflict errors show them to clients.
 */
import { CodedError } from "@quorate/proto";

export type StorageErrorCode =
  | "KeyNotFound"
  | "KeyExists"
  | "ResourceVersionConflicts"
  | "InvalidObj"
  | "Unreachable"
  | "Timeout"
  | "CorruptObj"
  | "Internal"
  | "InvalidOptions"
  | "ResourceVersionOnCreate"
  | "TooOldResourceVersion"
  | "TooLargeResourceVersion"
  | "InvalidContinueToken";

/** What only some errors have. */
export interface StorageErrorDetails {
  readonly cause?: unknown;
  /** TooLargeResourceVersion: the latest revision of the store. */
  readonly currentResourceVersion?: number;
  /** TooOldResourceVersion: goes on with the list at the latest revision. */
  readonly continueToken?: string;
}

/** An operation that failed; interpretStorageError makes the client's ApiError of it. */
export class StorageError extends CodedError<StorageErrorCode> {
  readonly key: string;
  readonly resourceVersion: number;
  readonly currentResourceVersion: number;
  readonly continueToken: string;

  constructor(
    code: StorageErrorCode,
    key: string,
    message: string,
    resourceVersion = 0,
    details: StorageErrorDetails = {},
  ) {
    super("StorageError", code, message, details.cause);
    this.key = key;
    this.resourceVersion = resourceVersion;
    this.currentResourceVersion = details.currentResourceVersion ?? 0;
    this.continueToken = details.continueToken ?? "";
  }
}

/** Kubernetes' number and name of the codes that it has numbers for. */
const numbered = {
  KeyNotFound: [1, "key not found"],
  KeyExists: [2, "key exists"],
  InvalidObj: [4, "invalid object"],
  Unreachable: [5, "server unreachable"],
  Timeout: [6, "request timeout"],
  CorruptObj: [7, "corrupt object"],
} as const;

function numberedError(
  code: keyof typeof numbered,
  key: string,
  why = "<nil>",
  cause?: unknown,
): StorageError {
  const [number, name] = numbered[code];
  const text = `StorageError: ${name}, Code: ${number}, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
  return new StorageError(code, key, text, 0, { cause });
}

/** @param key in all of these: as in the store, with the root */
export function keyNotFound(key: string): StorageError {
  return numberedError("KeyNotFound", key);
}

export function keyExists(key: string): StorageError {
  return numberedError("KeyExists", key);
}

/** A precondition does not hold. */
export function invalidObject(key: string, why: string): StorageError {
  return numberedError("InvalidObj", key, why);
}

export function unreachable(key: string, cause: unknown): StorageError {
  return numberedError("Unreachable", key, undefined, cause);
}

export function requestTimeout(key: string, why: string, cause?: unknown): StorageError {
  return numberedError("Timeout", key, why, cause);
}

/** The store has bytes at this key that are no object of the resource. */
export function corruptObject(key: string, cause: unknown): StorageError {
  return numberedError("CorruptObj", key, textOf(cause), cause);
}

/** A failure that is not the cluster's, such as a value that no key decrypts. */
export function internalStorageError(key: string, cause: unknown): StorageError {
  return new StorageError("Internal", key, textOf(cause), 0, { cause });
}

/** The client's options contradict each other; 400 to it. */
export function invalidOptions(key: string, message: string): StorageError {
  return new StorageError("InvalidOptions", key, message);
}

/** A revision that the store has not reached. */
export function tooLarge(key: string, wanted: number, current: number): StorageError {
  const message = `Too large resource version: ${wanted}, current: ${current}`;
  return new StorageError("TooLargeResourceVersion", key, message, wanted, {
    currentResourceVersion: current,
  });
}

/** A revision that is compacted. */
export function tooOld(key: string, message: string, continueToken = ""): StorageError {
  return new StorageError("TooOldResourceVersion", key, message, 0, { continueToken });
}

/** The message of an error, or the text of anything else that was thrown. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
