/**
 * Lists the files of a backup and the revisions that can be rebuilt from them.
 *
 * A chain is a base and the segments that follow it without a gap. If history was compacted before
 * it was recorded there is a gap: the segment behind it does not continue the one before, and a
 * base of its own begins a new chain.
 */
import type { Disk } from "@quorate/host";
import { defined, idToHex } from "@quorate/proto";
import { BackupError } from "./errors.ts";
import { parseBaseName, parseSegmentName } from "./format.ts";
import { readSegment } from "./segment-reader.ts";

export interface BaseFile {
  readonly path: string;
  readonly revision: number;
  readonly timeMs: number;
  readonly sizeBytes: number;
}

export interface SegmentFile {
  readonly path: string;
  readonly number: number;
  readonly clusterId: bigint;
  /** Earlier files have all changes up to and including this revision. */
  readonly follows: number;
  /** The last revision in it; `follows` if it has none. */
  readonly last: number;
  /** Start of the segment, and time of its last record, in ms since 1970. */
  readonly firstTimeMs: number;
  readonly lastTimeMs: number;
  readonly sizeBytes: number;
}

export interface BackupCatalog {
  readonly dir: string;
  /** By ascending revision. */
  readonly bases: readonly BaseFile[];
  /** In the order of writing, without those torn before their head. */
  readonly segments: readonly SegmentFile[];
}

/** A base and the segments to rebuild from it. */
export interface Chain {
  readonly base: BaseFile;
  /**
   * Segments with changes behind the base, without a gap; they may begin with changes before it.
   */
  readonly segments: readonly SegmentFile[];
  /** The last revision that can be rebuilt. */
  readonly last: number;
  /** The time up to which changes were recorded. */
  readonly lastTimeMs: number;
}

/**
 * Reads the whole backup. @throws BackupError for damage and for segments of two clusters;
 * DiskError
 */
export function readCatalog(disk: Disk, dir: string): BackupCatalog {
  const bases: BaseFile[] = [];
  const segments: SegmentFile[] = [];
  for (const name of disk.list(dir)) {
    const path = `${dir}/${name}`;
    const sizeBytes = disk.stat(path)?.sizeBytes ?? 0;
    const base = parseBaseName(name);
    if (base !== undefined) bases.push({ path, ...base, sizeBytes });
    const number = parseSegmentName(name);
    if (number === undefined) continue;
    const segment = readSegmentFile(disk, path, number, sizeBytes);
    if (segment !== undefined) segments.push(segment);
  }
  segments.sort((a, b) => a.number - b.number);
  const [first] = segments;
  for (const segment of segments) {
    if (first === undefined || segment.clusterId === first.clusterId) continue;
    throw new BackupError(
      "OtherHistory",
      dir,
      `it contains backups of two clusters: ${first.path} is of cluster ${idToHex(first.clusterId)}, ` +
        `${segment.path} of ${idToHex(segment.clusterId)}; move the files of one of them to another directory`,
    );
  }
  return {
    dir,
    bases: bases.sort((a, b) => a.revision - b.revision || a.timeMs - b.timeMs),
    segments,
  };
}

function readSegmentFile(
  disk: Disk,
  path: string,
  number: number,
  sizeBytes: number,
): SegmentFile | undefined {
  let found: { -readonly [K in keyof SegmentFile]: SegmentFile[K] } | undefined;
  for (const record of readSegment(disk, path)) {
    if (record.kind === "head") {
      const { clusterId, revision, timeMs } = record;
      found = {
        path,
        number,
        clusterId,
        follows: revision,
        last: revision,
        firstTimeMs: timeMs,
        lastTimeMs: timeMs,
        sizeBytes,
      };
      continue;
    }
    // A segment opens with its head.
    const file = defined(found, "the head of a segment");
    if (record.kind === "changes") file.last = record.revision;
    file.lastTimeMs = Math.max(file.lastTimeMs, record.timeMs);
  }
  return found;
}

/** The chain of each base, by ascending revision of the base. */
export function chainsOf(catalog: BackupCatalog): Chain[] {
  return catalog.bases.map((base) => {
    const segments: SegmentFile[] = [];
    let last = base.revision;
    let lastTimeMs = base.timeMs;
    for (const segment of catalog.segments) {
      if (segment.last < base.revision) continue;
      // The segment begins behind the last revision: the changes between are missing.
      if (segment.follows > last) break;
      if (segment.last < last) continue;
      segments.push(segment);
      last = segment.last;
      lastTimeMs = Math.max(lastTimeMs, segment.lastTimeMs);
    }
    return { base, segments, last, lastTimeMs };
  });
}

/**
 * The chain to rebuild a revision from: that of the newest base at or before it.
 * @throws BackupError that lists the revisions that can be rebuilt
 */
export function chainFor(catalog: BackupCatalog, revision: number): Chain {
  const chains = chainsOf(catalog);
  const chain = chains
    .filter(({ base, last }) => base.revision <= revision && revision <= last)
    .at(-1);
  if (chain !== undefined) return chain;
  throw new BackupError(
    "OutOfRange",
    catalog.dir,
    `revision ${revision} is not in it; ${coverageText(chains)}`,
  );
}

/** The ranges of revisions that can be rebuilt, as text. */
export function coverageText(chains: readonly Chain[]): string {
  const spans: { from: number; to: number }[] = [];
  for (const { base, last } of chains) {
    const open = spans.at(-1);
    if (open !== undefined && base.revision <= open.to) open.to = Math.max(open.to, last);
    else spans.push({ from: base.revision, to: last });
  }
  if (spans.length === 0) return "it has no base snapshot";
  return `it has the revisions ${spans.map(({ from, to }) => `${from} to ${to}`).join(", and ")}`;
}

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
