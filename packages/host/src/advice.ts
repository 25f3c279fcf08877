/**
 * The commands that error messages tell the operator to run next. They stand here once, so that a
 * renamed command is renamed everywhere.
 */

/** The command that reads a write-ahead log from end to end and names the place of any damage. */
export function verifyWalCommand(dir: string): string {
  return `quorateutl wal verify ${dir}`;
}

/**
 * The command that reads every record of a backend's folder and names the first that cannot be
 * read.
 */
export function verifyBackendCommand(dir: string): string {
  return `quorateutl backend verify ${dir}`;
}
