/**
 * etcd 20221, 20286: a watch that waits for a future revision gets nothing before it, also where
 * the member has caught up.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLatin1, type WatchId } from "@quorate/proto";
import { textsOf, WatchBench } from "./support/watching.ts";

const key = fromLatin1;

test("a watch from a future revision gets nothing older after the store was exchanged", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  bench.write({ k: "1" });
  call.create({ key: key("k"), startRevision: 10, progressNotify: true });
  call.create({ key: key("k"), startRevision: 5 });
  await bench.run();
  // A leader's store, which is at revision 6.
  await bench.exchange(() => {
    for (let i = 2; i < 6; i++) bench.write({ k: `${i}` });
  });
  await bench.run();
  const seen = call.read();
  assert.deepEqual(textsOf(seen), ["put k=4@5", "put k=5@6"]);
  // One that catches up in slices, and is exchanged once more meanwhile.
  call.create({ key: key("k"), startRevision: 9 });
  await bench.exchange(() => bench.write({ k: "6" }));
  call.listener.message?.(new Uint8Array([0x1a, 0]));
  await bench.run();
  for (const response of call.read()) {
    // Of the watches that wait for 9 and 10 nothing comes, no notification of an older revision
    // either.
    if (response.watchId === 1) continue;
    assert.ok(
      response.created || response.header!.revision >= 9 || response.watchId === -1,
      JSON.stringify(response.watchId),
    );
    assert.deepEqual(response.events, []);
  }
  for (let i = 7; i < 11; i++) bench.write({ k: `${i}` });
  await bench.run();
  const byWatch = new Map<WatchId, string[]>();
  for (const response of call.read())
    byWatch.set(response.watchId, [
      ...(byWatch.get(response.watchId) ?? []),
      ...textsOf([response]),
    ]);
  assert.deepEqual(byWatch.get(0), ["put k=9@10", "put k=10@11"]);
  assert.deepEqual(byWatch.get(2), ["put k=8@9", "put k=9@10", "put k=10@11"]);
});
