/** Paths as the Disk interface has them: with slashes. */

/** The folder that a file or folder stands in: "." for a name alone, "/" at the root. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : slash === 0 ? "/" : path.slice(0, slash);
}
