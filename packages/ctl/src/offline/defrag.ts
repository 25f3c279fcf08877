/**
 * Giving back the space of a stopped member's store, as etcdutl defrag: range by range, so that it
 * can tell how far it is.
 */
import type { Keyspace } from "@quorate/host";
import { levelKeyspaces } from "@quorate/host/node";
import { humanBytes } from "../go-format.ts";
import { Exit, ExitCode } from "../io.ts";
import { logInfo } from "../log.ts";
import type { Command } from "../program.ts";
import { Progress } from "../progress.ts";
import { reportingErrors, storeFolder } from "./data-dir.ts";

/** Bytes of records in a range that is rewritten at a time. */
const RANGE_BYTES = 32 * 1024 * 1024;

/**
 * Rewrites all records, and reads each of them before.
 * @param onProgress told the bytes of records that have been rewritten
 * @throws DiskError where a record cannot be read
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
    // What was removed at the borders is in one of two neighbouring ranges.
    await keyspace.compact({ from, to: range.to });
    doneBytes += range.sizeBytes;
    onProgress(doneBytes);
    from = range.to;
  } while (from !== undefined);
}

/** Where a range of about so many bytes ends; undefined at the end of the store. */
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
  short: "Rewrites a stopped member's store, so that it gives unused space back",
  long: `Rewrites a stopped member's store, so that what compaction removed gives its space back. Every record is read, its checksum
compared.

The member must be stopped; "quoratectl defrag" does the same for a running one, which serves meanwhile.`,
  flags: {
    "data-dir": {
      kind: "string",
      defaultText: "",
      required: true,
      doc: "the member's data directory",
    },
  },
  async run({ flags, io }) {
    const dataDir = flags.string("data-dir").replace(/(.)\/+$/, "$1");
    const progress = new Progress(io, "defragmenting ");
    try {
      await reportingErrors(async () => {
        const keyspace = await levelKeyspaces.open(storeFolder(dataDir), { create: false });
        const beforeBytes = keyspace.sizeOnDiskBytes();
        try {
          await rewriteStore(keyspace, (bytes) =>
            progress.update(Math.min(bytes, beforeBytes), beforeBytes),
          );
        } finally {
          await keyspace.close();
        }
        progress.end();
        // LevelDB removes the old files at the latest when it is opened.
        const again = await levelKeyspaces.open(storeFolder(dataDir), { create: false });
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
