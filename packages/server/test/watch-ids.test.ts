/** Ids of watches that clients choose. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLatin1, WatchRequest, type WatchResponse } from "@quorate/proto";
import { WatchBench } from "./support/watching.ts";

const key = fromLatin1;

test("an id that a client chooses keeps its value, also beyond 2^53", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  const ids = [2n ** 53n + 1n, 2n ** 53n + 2n, -(2n ** 63n)];
  for (const watchId of ids) call.create({ key: key("k"), watchId });
  call.create({ key: key("k"), watchId: ids[0] });
  bench.write({ k: "1" });
  await bench.run();
  call.listener.message?.(
    WatchRequest.encode({ requestUnion: { case: "cancelRequest", value: { watchId: ids[1] } } }),
  );
  await bench.run();
  const seen = call.read();
  const idsOf = (wanted: (response: WatchResponse) => boolean) =>
    seen.filter(wanted).map(({ watchId }) => watchId);
  assert.deepEqual(
    idsOf(({ created, canceled }) => created && !canceled),
    ids,
  );
  // The second one of an id has none.
  assert.deepEqual(
    idsOf(({ canceled }) => canceled),
    [-1, ids[1]],
  );
  assert.deepEqual(
    idsOf(({ events }) => events.length > 0),
    ids,
  );
});
