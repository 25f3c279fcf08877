/**
 * What to say when the system refuses something that the scripts need: a directory of another user,
 * a full or a read-only disk.
 */

const ADVICE: Readonly<Record<string, string>> = {
  EACCES:
    "permission denied; run this as the user that it belongs to, or name another directory with --dir",
  EPERM: "not permitted; run this as the user that it belongs to",
  EROFS: "the file system is read-only; name a directory that can be written with --dir",
  ENOSPC: "no space left on the disk; free some, or name a directory on another disk with --dir",
  EDQUOT: "the disk quota is used up; free some, or name a directory on another disk with --dir",
  ENOTDIR: "a part of the path is a file; name a directory with --dir",
  EEXIST: "a file stands where a directory should be; name a directory with --dir",
};

/**
 * The line for the user about an error that Node's `fs` or `process.kill` threw, with the path and
 * what to do; `dir` stands for the path where the error has none. Undefined for every other error:
 * that is ours, and its stack is wanted.
 */
export function systemTrouble(error: unknown, dir: string): string | undefined {
  const { code, syscall, path } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return undefined;
  const where = syscall === "kill" ? "a member's process" : (path ?? dir);
  return `${where}: ${ADVICE[code] ?? (error as Error).message} (${code}, ${syscall})`;
}
