/** Files that are written whole or not at all. */
import { chmodSync, renameSync, writeFileSync } from "node:fs";

/**
 * Writes a file under another name first, so that a reader never sees half of it, and a key is
 * never readable by others, not even briefly. Throws Node's errors, which name the path.
 */
export function writeWholeFile(path: string, text: string, mode: number): void {
  const draft = `${path}.new`;
  writeFileSync(draft, text, { mode });
  chmodSync(draft, mode);
  renameSync(draft, path);
}
