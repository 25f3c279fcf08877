/**
 * Rebuilds a store as of a revision: the base, and every later change up to the revision, under its
 * own revision. It can be read at all revisions from the base's compact revision on.
 *
 * Leases are not part of the history of keys: they are as last recorded before the next change,
 * with their full time to live. A lease that existed only between two records of leases, but had a
 * key at that revision, gets UNSEEN_LEASE_TTL_SECONDS. Users and roles are as last recorded, too,
 * where that is later than the base; passwords are the base's.
 */
import { type Disk, type KeyspaceOpener, parentOf } from "@quorate/host";
import {
  etcdFileRevision,
  importEtcdFile,
  type LaterChange,
  type LaterUsers,
  type NewCluster,
} from "@quorate/store";
import type { Chain } from "./catalog.ts";
import { BackupError } from "./errors.ts";
import { applyLeases } from "./follow-state.ts";
import type { BackupRecord } from "./format.ts";
import { readSegment } from "./segment-reader.ts";

/** The time to live of an unrecorded lease. */
export const UNSEEN_LEASE_TTL_SECONDS = 60;
/** Changes are imported in slices of about this size. */
const SLICE_BYTES = 1024 * 1024;

/** Records that say what was when. */
const HISTORY: ReadonlySet<BackupRecord["kind"]> = new Set<BackupRecord["kind"]>([
  "changes",
  "leases",
  "users",
]);

/** Records that say that what came before is complete. */
const KNOWN: ReadonlySet<BackupRecord["kind"]> = new Set<BackupRecord["kind"]>([
  "changes",
  "progress",
]);

/**
 * A time between two runs: what the second one received first may have been made before it or
 * after it.
 */
function unknownTime(
  basePath: string,
  timeMs: number,
  knownMs: number,
  { revision, timeMs: receivedMs }: { readonly revision: number; readonly timeMs: number },
): BackupError {
  const shown = (ms: number): string => new Date(ms).toISOString();
  return new BackupError(
    "OutOfRange",
    parentOf(basePath),
    `${shown(timeMs)} is between two runs of the backup: revision ${revision} was received at ${shown(receivedMs)} and made at some ` +
      `time since ${shown(knownMs)}, so it cannot be told whether it belongs to that state. Use a revision: --at ${revision - 1} is the ` +
      `state of ${shown(knownMs)}, --at ${revision} and later ones have what came after. A backup that runs all the time has the times`,
  );
}

/** The end: a revision, or the changes recorded up to a time. */
export type RebuildPoint = { readonly revision: number } | { readonly timeMs: number };

export interface RebuildTarget {
  readonly storeDir: string;
  readonly cluster: NewCluster;
  readonly bumpRevision?: number;
  /** Users and roles are kept, and not enforced. */
  readonly disablesAuth?: boolean;
  /** Called with the progress in bytes: of the base, then of the segments. */
  readonly onProgress?: ((bytes: number, totalBytes: number) => void) | undefined;
  /** Called with the users that came after the base: they have no password that fits. */
  readonly onUsersWithoutPassword?: (users: readonly string[]) => void;
}

/**
 * Makes the store. Returns its revision.
 * @throws BackupError, BoltDamageError, EtcdFileError, DiskError
 */
export async function rebuild(
  deps: { readonly disk: Disk; readonly keyspaces: KeyspaceOpener },
  chain: Chain,
  point: RebuildPoint,
  target: RebuildTarget,
): Promise<number> {
  const { base, segments } = chain;
  const found = etcdFileRevision(deps.disk, base.path);
  if (found !== base.revision)
    throw new BackupError(
      "Damaged",
      base.path,
      `its name says revision ${base.revision}, and it holds the state of revision ${found}; give it its name back`,
    );
  const leases = new Map<bigint, number>();
  /** Times to live of all leases in the chain, including ended ones. */
  const everSeen = new Map<bigint, number>();
  let users: LaterUsers | undefined;
  let revision = base.revision;
  let listed = false;
  const totalBytes = base.sizeBytes + segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  let segmentBytes = 0;
  /** Until when it is known that no change is missing. */
  let knownMs = base.timeMs;

  function* later(): Generator<LaterChange[]> {
    let isOver = false;
    /** Whether the first change after the time was seen. */
    let isDecided = false;
    let slice: LaterChange[] = [];
    let sliceBytes = 0;
    for (const segment of segments) {
      let isOfThisRun = false;
      for (const record of readSegment(deps.disk, segment.path)) {
        if ("timeMs" in point && record.kind === "changes" && record.revision > base.revision) {
          const isLater = record.timeMs > point.timeMs;
          if (isLater && !isDecided && !isOfThisRun && point.timeMs > knownMs)
            throw unknownTime(base.path, point.timeMs, knownMs, record);
          isDecided ||= isLater;
          isOfThisRun = true;
        }
        if (record.kind === "progress" && "timeMs" in point && record.timeMs <= point.timeMs)
          isOfThisRun = true;
        if (record.kind === "leases") {
          for (const [id, ttlSeconds] of record.leases)
            if (ttlSeconds > 0) everSeen.set(id, ttlSeconds);
        }
        if (HISTORY.has(record.kind)) {
          isOver ||=
            "timeMs" in point
              ? record.timeMs > point.timeMs
              : record.kind === "changes" && record.revision > point.revision;
        }
        if (isOver) continue;
        if (record.kind === "users") users = record.users;
        if (record.kind === "leases") {
          applyLeases(leases, record);
          listed ||= record.all;
        }
        if (KNOWN.has(record.kind)) knownMs = Math.max(knownMs, record.timeMs);
        // The base has the segment's changes up to its own revision.
        if (record.kind !== "changes" || record.revision <= base.revision) continue;
        revision = record.revision;
        for (const [sub, { deleted, record: bytes }] of record.changes.entries()) {
          slice.push({ main: record.revision, sub, deleted, record: bytes });
          sliceBytes += bytes.length;
        }
        if (sliceBytes < SLICE_BYTES) continue;
        yield slice;
        slice = [];
        sliceBytes = 0;
      }
      segmentBytes += segment.sizeBytes;
      target.onProgress?.(base.sizeBytes + segmentBytes, totalBytes);
    }
    if (slice.length > 0) yield slice;
  }

  await importEtcdFile(deps, base.path, target.storeDir, target.cluster, {
    bumpRevision: target.bumpRevision,
    disablesAuth: target.disablesAuth,
    onProgress: (bytes, baseBytes) =>
      target.onProgress?.((bytes / baseBytes) * base.sizeBytes, totalBytes),
    later: {
      changes: later,
      users: () => users,
      withoutPassword: (names) => target.onUsersWithoutPassword?.(names),
      leases(inFile, inUse) {
        // Without a list of all leases, those of the base stay.
        const result = new Map(listed ? leases : [...inFile, ...leases]);
        for (const id of inUse)
          if (!result.has(id))
            result.set(id, inFile.get(id) ?? everSeen.get(id) ?? UNSEEN_LEASE_TTL_SECONDS);
        return result;
      },
    },
  });
  return revision;
}
