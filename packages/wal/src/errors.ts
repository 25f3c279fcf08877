/**
 * What can be wrong with a log.
 */
import { verifyWalCommand } from "@quorate/host";

/**
 * The log holds bytes that were not written like that, and it is not the torn end of a write. The
 * member must not start from it.
 */
export class WalDamageError extends Error {
  readonly code = "Damaged";
  /** The damaged file. */
  readonly path: string;
  /** Where in the file the first broken record starts. */
  readonly offset: number;
  readonly reason: string;
  /** The command that tells more. */
  readonly command: string;

  /** @param dir the folder of the log. */
  constructor(dir: string, name: string, offset: number, reason: string) {
    const path = `${dir}/${name}`;
    const command = verifyWalCommand(dir);
    super(
      `${path}: damaged at byte ${offset}: ${reason}; to see more, stop the member and run: ${command}`,
    );
    this.name = "WalDamageError";
    this.path = path;
    this.offset = offset;
    this.reason = reason;
    this.command = command;
  }
}

/**
 * Why a log cannot be used as asked.
 *
 * - NotFound: there is no log, or none that reaches back far enough.
 * - Exists: there is one already.
 * - SnapshotNotFound, SnapshotMismatch: the snapshot to start from is not marked in the log, or
 *   with another term.
 * - Closed: it was closed, or an earlier write or sync failed, after which nobody knows what the
 *   disk holds.
 */
export type WalErrorCode =
  | "NotFound"
  | "Exists"
  | "SnapshotNotFound"
  | "SnapshotMismatch"
  | "Closed";

/** An operating error of the log, with its folder. Errors of the disk itself are DiskErrors. */
export class WalError extends Error {
  readonly code: WalErrorCode;
  readonly path: string;

  constructor(code: WalErrorCode, path: string, detail: string, cause?: unknown) {
    super(`${path}: ${detail}`, { cause });
    this.name = "WalError";
    this.code = code;
    this.path = path;
  }
}

/**
 * Throws if `condition` does not hold: a mistake of the caller or of this package, never of the
 * disk.
 */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${message}`);
}
