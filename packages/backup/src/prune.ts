/** Which files of a backup are older than what is to be kept. */
import type { BackupCatalog } from "./catalog.ts";

/**
 * The files that can go when any moment since `keepSinceMs` must stay possible to rebuild: bases
 * before the newest one of that time or earlier, and the segments that end before it. Nothing if
 * there is no base as old as that.
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
