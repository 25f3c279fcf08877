/** Paths of the Disk interface, with slashes. */

/** The parent directory: "." for a plain name, "/" at the root. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : slash === 0 ? "/" : path.slice(0, slash);
}
