/**
 * The commands that error messages recommend, in one place.
 */

/** The command that reads a whole write-ahead log and names any damage. */
export function verifyWalCommand(dir: string): string {
  return `quorateutl wal verify ${dir}`;
}

/**
 * The command that reads every record of a backend and names the first damage.
 */
export function verifyBackendCommand(dir: string): string {
  return `quorateutl backend verify ${dir}`;
}
