/** What a compaction drops is gone from the disk, whether it was written before or not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { CompactionRequest, DeleteRangeRequest, fromUtf8 } from "@quorate/proto";
import { Bucket, bucketRange } from "../src/backend/backend.ts";
import { currentDirectory } from "../src/backend/directories.ts";
import { decodeRevision } from "../src/backend/revision.ts";
import { Store } from "../src/store.ts";
import { Log } from "./store-log.ts";

/** The revisions of the records on the disk: "main.sub", and "t" for a tombstone. */
async function onDisk(opener: MemoryKeyspaceOpener): Promise<string[]> {
  const keyspace = await opener.open(currentDirectory("/store"), { create: false });
  const found: string[] = [];
  for await (const slice of keyspace.scan(bucketRange(Bucket.key))) {
    for (const [key] of slice) {
      const { main, sub, tombstone } = decodeRevision(key.subarray(1))!;
      found.push(`${main}.${sub}${tombstone ? "t" : ""}`);
    }
  }
  await keyspace.close();
  return found;
}

for (const flushAfter of [[], [2], [4], [2, 5], [1, 2, 3, 4, 5, 6]]) {
  test(`batches written after entries ${flushAfter.join(" ") || "-"}`, async () => {
    const opener = new MemoryKeyspaceOpener(new MemoryDisk());
    const store = await Store.open(opener, "/store");
    const log = new Log();
    log.put("a", "1");
    log.put("a", "2");
    log.put("b", "1");
    log.request({ deleteRange: DeleteRangeRequest.encode({ key: fromUtf8("b") }) });
    log.put("a", "3");
    log.request({ compaction: CompactionRequest.encode({ revision: 6, physical: false }) });
    for (const [i, entry] of log.entries.entries()) {
      store.apply(entry);
      if (flushAfter.includes(i + 1)) await store.flush();
    }
    while (!store.mvcc.compactStep(2)) if (flushAfter.length > 2) await store.flush();
    await store.close({ flush: true });
    assert.deepEqual(await onDisk(opener), ["6.0"]);
  });
}
