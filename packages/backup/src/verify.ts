/**
 * Verifies a backup: reads every file, rebuilds the store to the end of the chain, which checks
 * each record against those before it, and compares its hash with every recorded hash.
 */
import type { Disk, KeyspaceOpener } from "@quorate/host";
import { type NewCluster, Store, verifyChecksum } from "@quorate/store";
import type { Chain } from "./catalog.ts";
import { BackupError } from "./errors.ts";
import type { BackupRecord } from "./format.ts";
import { rebuild } from "./rebuild.ts";
import { readSegment } from "./segment-reader.ts";

/** Records dropped per step of compaction. */
const COMPACT_STEP_RECORDS = 10_000;

export interface VerifiedChain {
  readonly from: number;
  readonly to: number;
  /** Number of compared hashes. */
  readonly hashes: number;
}

/**
 * Checks a chain up to `upTo`, the revision of the next base or the chain's last.
 * @param scratch a directory that does not exist, for the rebuilt store; it is removed again
 * @throws BackupError and what rebuilding throws
 */
export async function verifyChain(
  deps: { readonly disk: Disk; readonly keyspaces: KeyspaceOpener },
  chain: Chain,
  upTo: number,
  cluster: NewCluster,
  scratch: string,
  onProgress?: (bytes: number, totalBytes: number) => void,
): Promise<VerifiedChain> {
  const { disk, keyspaces } = deps;
  verifyChecksum(disk, chain.base.path);
  disk.makeDir(scratch);
  try {
    await rebuild(deps, chain, { revision: upTo }, { storeDir: scratch, cluster, onProgress });
    const store = await Store.open(keyspaces, scratch);
    try {
      if (store.mvcc.currentRevision !== upTo) {
        throw new BackupError(
          "Damaged",
          chain.base.path,
          `rebuilt up to revision ${upTo}, it is at revision ${store.mvcc.currentRevision}`,
        );
      }
      return {
        from: chain.base.revision,
        to: upTo,
        hashes: await compareHashes(disk, chain, upTo, store),
      };
    } finally {
      await store.close({ flush: false });
    }
  } finally {
    disk.remove(scratch);
  }
}

async function compareHashes(
  disk: Disk,
  chain: Chain,
  upTo: number,
  store: Store,
): Promise<number> {
  let count = 0;
  for (const segment of chain.segments) {
    for (const record of readSegment(disk, segment.path)) {
      if (record.kind !== "hash" || record.revision < chain.base.revision || record.revision > upTo)
        continue;
      if (!(await compareHash(segment.path, record, store))) continue;
      count++;
    }
  }
  return count;
}

/**
 * Returns false for a hash that cannot be compared because the store is already compacted further.
 */
async function compareHash(
  path: string,
  recorded: BackupRecord & { kind: "hash" },
  store: Store,
): Promise<boolean> {
  const { mvcc } = store;
  if (recorded.compactRevision > mvcc.compactRevision) mvcc.compact(recorded.compactRevision);
  if (recorded.compactRevision < mvcc.compactRevision || recorded.revision < mvcc.compactRevision)
    return false;
  while (!mvcc.compactStep(COMPACT_STEP_RECORDS)) await store.flush();
  const { hash } = await mvcc.hashKV(recorded.revision);
  if (hash === recorded.hash) return true;
  throw new BackupError(
    "HashMismatch",
    path,
    `the hash at revision ${recorded.revision} is ${hash}, but the cluster reported ${recorded.hash} ` +
      `(${new Date(recorded.timeMs).toISOString()}): the backup differs from the cluster; begin a new one in another directory`,
  );
}
