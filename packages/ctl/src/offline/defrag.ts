/**
 * Defragments a stopped member's store, as etcdutl defrag: range by range, so that it can show
 * progress.
 */

import type { Command } from "@quorate/cli";
import { Exit, ExitCode, humanBytes, Progress, textFlag } from "@quorate/cli";
import type { Keyspace } from "@quorate/host";
import { levelKeyspaces } from "@quorate/host/node";
import { logInfo } from "../connect/log.ts";
import { plainPath, reportingErrors, storeDirectory } from "../files/data-dir.ts";

/** Bytes of records rewritten at a time. */
const RANGE_BYTES = 32 * 1024 * 1024;

/**
 * Reads and rewrites all records.
 * @param onProgress called with the bytes of records rewritten so far
 * @throws DiskError if a record cannot be read
 */
export async function rewriteStore(
  keyspace: Keyspace,
  onProgress: (bytes: number) => void,
  rangeBytes = RANGE_BYTES,
): Promise<void> {
  let from: Uint8Array | undefined;
  let doneBytes = 0;
  do {
    const range = await nextRange(keyspace, from, rangeBytes);
    // Removed records at a border are in one of the two ranges beside it.
    await keyspace.compact({ from, to: range.to });
    doneBytes += range.sizeBytes;
    onProgress(doneBytes);
    from = range.to;
  } while (from !== undefined);
}

/** The end of a range of about `sizeBytes`; undefined at the end of the store. */
async function nextRange(keyspace: Keyspace, from: Uint8Array | undefined, rangeBytes: number) {
  let sizeBytes = 0;
  for await (const slice of keyspace.scan({ from })) {
    for (const [key, value] of slice) {
      if (sizeBytes >= rangeBytes) return { to: key.slice(), sizeBytes };
      sizeBytes += key.length + value.length;
    }
  }
  return { to: undefined, sizeBytes };
}

export const defragCommand: Command = {
  use: "defrag --data-dir {dir}",
  short: "Defragments a stopped member's store: rewrites it to release unused space",
  long: `Rewrites a stopped member's store to release the space of compacted records. Every record is read
and its checksum verified.

The member must be stopped; "quoratectl defrag" does the same on a running member.`,
  flags: {
    "data-dir": textFlag("the member's data directory", "", { required: true }),
  },
  async run({ flags, io }) {
    const dataDir = plainPath(flags.string("data-dir"));
    const progress = new Progress(io, "defragmenting ");
    try {
      await reportingErrors(async () => {
        const keyspace = await levelKeyspaces.open(storeDirectory(dataDir), { create: false });
        const beforeBytes = keyspace.sizeOnDiskBytes();
        try {
          await rewriteStore(keyspace, (bytes) =>
            progress.update(Math.min(bytes, beforeBytes), beforeBytes),
          );
        } finally {
          await keyspace.close();
        }
        progress.end();
        // LevelDB may remove the old files only when it is opened again.
        const again = await levelKeyspaces.open(storeDirectory(dataDir), { create: false });
        const afterBytes = again.sizeOnDiskBytes();
        await again.close();
        logInfo(io, "finished defragmenting directory", {
          path: dataDir,
          "current-db-size-bytes-diff": afterBytes - beforeBytes,
          "current-db-size-bytes": afterBytes,
          "current-db-size": humanBytes(afterBytes),
        });
      });
    } catch (error) {
      if (!(error instanceof Exit)) throw error;
      throw new Exit(
        ExitCode.error,
        `Failed to defragment etcd data[${dataDir}] (${error.message})`,
      );
    } finally {
      progress.end();
    }
  },
};
