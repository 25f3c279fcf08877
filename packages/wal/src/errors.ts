/** The operating errors of a log. */
import { CodedError } from "@quorate/proto";

/**
 * The log holds bytes that this program did not write, and they are not a torn write at the end.
 * The member must not start from it. Who reports it adds `damagedLogSteps` of package host.
 */
export class WalDamageError extends CodedError<"Damaged"> {
  /** The damaged file. */
  readonly path: string;
  /** Byte offset in the file of the first broken record. */
  readonly offset: number;
  readonly reason: string;

  /** @param dir the directory of the log */
  constructor(dir: string, name: string, offset: number, reason: string) {
    const path = `${dir}/${name}`;
    super("WalDamageError", "Damaged", `${path}: damaged at byte ${offset}: ${reason}`);
    this.path = path;
    this.offset = offset;
    this.reason = reason;
  }
}

/**
 * Why a log cannot be used:
 *
 * - NotFound: there is no log, or it starts after the requested index.
 * - Exists: there is a log already.
 * - SnapshotNotFound, SnapshotMismatch: the log has no mark of the requested snapshot, or one with
 * another term.
 * - Closed: the log was closed, or an earlier write or sync failed. After a failed write the
 * content of the disk is unknown.
 */
export type WalErrorCode =
  | "NotFound"
  | "Exists"
  | "SnapshotNotFound"
  | "SnapshotMismatch"
  | "Closed";

/** An operating error of the log. Errors of the disk itself are DiskErrors. */
export class WalError extends CodedError<WalErrorCode> {
  readonly path: string;

  constructor(code: WalErrorCode, path: string, detail: string, cause?: unknown) {
    super("WalError", code, `${path}: ${detail}`, cause);
    this.path = path;
  }
}

/** The operating errors of this package. */
export type WalFailure = WalDamageError | WalError;
