/** Paths of the Disk interface, with slashes. */

/** The parent directory: "." for a plain name, "/" at the root. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : slash === 0 ? "/" : path.slice(0, slash);
}

/**
 * In a data directory while one program's files take the place of another's: they are neither's
 * until it is gone.
 */
export const EXCHANGE_FILE = "exchange";
