/**
 * Turns Node's system errors into DiskErrors. This is the only place that knows errno names.
 */
import { DiskError, type DiskErrorCode } from "../src/disk.ts";

/**
 * The code and the words of each errno that a caller can act on; every other one is "Io" with the
 * system's own words.
 */
const KNOWN: Readonly<Record<string, readonly [DiskErrorCode, string]>> = {
  ENOENT: ["NotFound", "no such file or folder"],
  EEXIST: ["Exists", "exists already"],
  ENOTEMPTY: ["Exists", "the folder is not empty"],
  ENOSPC: ["NoSpace", "no space left on the disk"],
  EDQUOT: ["NoSpace", "the disk quota is used up"],
  EACCES: ["NotPermitted", "permission denied"],
  EPERM: ["NotPermitted", "operation not permitted"],
  EROFS: ["NotPermitted", "the file system is read-only"],
};

/** The DiskError for what a `node:fs` call threw on `path`. A DiskError passes as it is. */
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
