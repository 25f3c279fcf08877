import { CodedError } from "@quorate/proto";

/**
 * Why a backup cannot be made or used:
 * - Damaged: a file does not hold what was written.
 * - OutOfRange: the backup does not reach the requested revision or time.
 * - OtherHistory: the files, or the cluster, belong to another cluster or to another history of it.
 * - HashMismatch: a rebuilt store has another hash than the cluster reported.
 * - CompactedTooFast: the cluster compacts its history faster than it can be recorded.
 * - Stopped: the run was stopped before its first base was complete.
 */
export type BackupErrorCode =
  | "Damaged"
  | "OutOfRange"
  | "OtherHistory"
  | "HashMismatch"
  | "CompactedTooFast"
  | "Stopped";

/** An operating error of a backup, with the file or directory it is about. */
export class BackupError extends CodedError<BackupErrorCode> {
  readonly path: string;

  constructor(code: BackupErrorCode, path: string, problem: string) {
    super("BackupError", code, `${path}: ${problem}`);
    this.path = path;
  }
}
