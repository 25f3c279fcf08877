/** Directories of tests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

/**
 * A new directory, which is removed when the test has ended.
 * @param name the beginning of its name
 * @param test the test; by default all tests of the file
 */
export function scratchDirectory(
  name: string,
  test: { after(hook: () => void): void } = { after },
): string {
  const directory = mkdtempSync(join(tmpdir(), name));
  test.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
