/**
 * Converts Node's system errors to DiskErrors. Only this file knows errno names.
 */
import { DiskError, type DiskErrorCode } from "../src/disk.ts";

/**
 * Code and text of each errno that a caller can act on; all others are "Io" with the system's text.
 */
const KNOWN: Readonly<Record<string, readonly [DiskErrorCode, string]>> = {
  ENOENT: ["NotFound", "no such file or directory"],
  EEXIST: ["Exists", "exists already"],
  ENOTEMPTY: ["Exists", "the directory is not empty"],
  ENOSPC: ["NoSpace", "no space left on the disk"],
  EDQUOT: ["NoSpace", "the disk quota is exhausted"],
  EACCES: ["NotPermitted", "permission denied"],
  EPERM: ["NotPermitted", "operation not permitted"],
  EROFS: ["NotPermitted", "the file system is read-only"],
};

/** The DiskError for an error of a `node:fs` call on `path`. A DiskError is returned unchanged. */
export function toDiskError(error: unknown, path: string): DiskError {
  if (error instanceof DiskError) return error;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const known = code === undefined ? undefined : KNOWN[code];
  if (known)
    return new DiskError(
      known[0],
      path,
      `${known[1]} (${code}${syscall ? `, ${syscall}` : ""})`,
      error,
    );
  return new DiskError("Io", path, message, error);
}
