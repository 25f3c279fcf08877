/**
 * The end of a backup, from which the next run continues. It includes the last change, to detect a
 * cluster with another history, and the leases with their times to live, to avoid requesting them
 * all again.
 */
import { BoltFile } from "@quorate/bolt";
import type { Disk } from "@quorate/host";
import { leasepb } from "@quorate/proto";
import type { BackupCatalog } from "./catalog.ts";
import type { RevisionChange } from "./format.ts";
import { readSegment } from "./segment-reader.ts";

export interface FollowState {
  /** The last revision that the backup has. */
  readonly revision: number;
  readonly clusterId: bigint;
  /** The changes of that revision; undefined if the backup ends with a base. */
  readonly changes: readonly RevisionChange[] | undefined;
  /** Times to live in seconds, by lease. */
  readonly leases: ReadonlyMap<bigint, number>;
}

/** The state at the end of the newest segment; undefined without segments. */
export function followState(disk: Disk, catalog: BackupCatalog): FollowState | undefined {
  const last = catalog.segments.at(-1);
  if (last === undefined) return undefined;
  let changes: readonly RevisionChange[] | undefined;
  const leases = new Map<bigint, number>();
  for (const record of readSegment(disk, last.path)) {
    if (record.kind === "changes") changes = record.changes;
    if (record.kind === "leases") applyLeases(leases, record);
  }
  return { revision: last.last, clusterId: last.clusterId, changes, leases };
}

/** Applies a record to a list of leases. */
export function applyLeases(
  leases: Map<bigint, number>,
  record: { readonly all: boolean; readonly leases: ReadonlyMap<bigint, number> },
): void {
  if (record.all) leases.clear();
  for (const [id, ttlSeconds] of record.leases) {
    if (ttlSeconds === 0) leases.delete(id);
    else leases.set(id, ttlSeconds);
  }
}

/** The leases in a base, with their times to live. @throws BoltDamageError, DiskError */
export function leasesOfBase(disk: Disk, path: string): Map<bigint, number> {
  const leases = new Map<bigint, number>();
  const file = BoltFile.open(disk, path);
  try {
    for (const slice of file.records("lease")) {
      for (const [, value] of slice) {
        const { ID, TTL } = leasepb.Lease.decode(value);
        leases.set(ID, TTL);
      }
    }
  } finally {
    file.close();
  }
  return leases;
}
