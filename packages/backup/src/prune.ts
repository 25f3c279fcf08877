/** Selects the files of a backup that are too old. */
import type { BackupCatalog } from "./catalog.ts";

/**
 * The files that are not needed to rebuild any moment since `keepSinceMs`: bases before the newest
 * one of that time or earlier, and the segments that end before that base. Empty without a base
 * that old.
 */
export function prunable(catalog: BackupCatalog, keepSinceMs: number): string[] {
  const kept = catalog.bases.filter(({ timeMs }) => timeMs <= keepSinceMs).at(-1);
  if (kept === undefined) return [];
  const bases = catalog.bases.filter(
    ({ revision, timeMs }) =>
      revision < kept.revision || (revision === kept.revision && timeMs < kept.timeMs),
  );
  const segments = catalog.segments.filter(
    ({ last }, i) => last <= kept.revision && i < catalog.segments.length - 1,
  );
  return [...segments, ...bases].map(({ path }) => path);
}
