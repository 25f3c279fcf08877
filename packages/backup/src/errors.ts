/** What can be wrong with a backup. */

/** A backup that cannot be used as asked, or whose files are not what was written. */
export class BackupError extends Error {
  readonly path: string;
  constructor(path: string, problem: string) {
    super(`${path}: ${problem}`);
    this.name = "BackupError";
    this.path = path;
  }
}
