/** Audit files that are full or old get a time in their name; of those the newest are kept. */
import { readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** "audit.log" -> "audit.log.20260301T120000.123Z" */
const STAMP = /^\.\d{8}T\d{6}\.\d{3}Z$/;

/**
 * Moves the file away, and deletes the oldest of those that were moved before.
 * @param keepFiles how many moved files stay
 */
export async function rotate(path: string, wallMs: number, keepFiles: number): Promise<void> {
  const stamp = new Date(wallMs).toISOString().replaceAll(/[-:]/g, "");
  await rename(path, `${path}.${stamp}`);
  const [dir, name] = [dirname(path), basename(path)];
  const moved = (await readdir(dir))
    .filter((one) => one.startsWith(name) && STAMP.test(one.slice(name.length)))
    .sort();
  for (const old of moved.slice(0, Math.max(0, moved.length - keepFiles)))
    await unlink(join(dir, old));
}
