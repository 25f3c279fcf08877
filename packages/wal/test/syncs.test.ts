/** Which sync makes what durable, on files whose syncs the test ends. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { DiskFile } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { Syncs } from "../src/syncs.ts";

function setUp() {
  const clock = new ManualClock();
  const running: { readonly name: string; end: (error?: Error) => void }[] = [];
  const fileOf = (name: string) =>
    ({
      dataSync: () =>
        new Promise<void>((resolve, reject) => {
          const end = (error?: Error) => (error === undefined ? resolve() : reject(error));
          running.push({ name, end });
        }),
      dataSyncNow: () => 3,
    }) as unknown as DiskFile;
  const files = { a: fileOf("a"), b: fileOf("b") };
  const owner = {
    end: { file: files.a, lengthBytes: 100 },
    isDurable: false,
    synced: (file: DiskFile, lengthBytes: number) =>
      notes.push(`synced ${file === files.a ? "a" : "b"} ${lengthBytes}`),
    failed: (_file: DiskFile, error: unknown) => {
      notes.push((error as Error).message);
      syncs.fail(error);
    },
  };
  const notes: string[] = [];
  const syncs = new Syncs(clock, (ms) => notes.push(`${ms} ms`), owner);
  /** Notes when a sync that was asked for is over. */
  const ask = (name: string) =>
    void syncs.sync().then(
      () => notes.push(`${name} is durable`),
      () => notes.push(`${name} is not`),
    );
  return { clock, running, files, owner, notes, syncs, ask };
}

it("callers share the running sync only for the very bytes that it makes durable", async () => {
  const { clock, running, files, owner, notes, syncs, ask } = setUp();
  assert.equal(syncs.lastMs, Number.POSITIVE_INFINITY);
  ask("first");
  ask("same");
  owner.end = { file: files.a, lengthBytes: 101 };
  ask("longer");
  owner.end = { file: files.b, lengthBytes: 100 };
  ask("next segment");
  assert.deepEqual([running.length, syncs.running?.lengthBytes], [1, 100]);
  clock.advance(4);
  running[0].end();
  await clock.settle();
  assert.deepEqual(notes.splice(0), [
    "4 ms",
    "synced a 100",
    "first is durable",
    "same is durable",
  ]);
  assert.deepEqual([running.map(({ name }) => name), syncs.lastMs], [["a", "b"], 4]);
  running[1].end();
  await clock.settle();
  assert.deepEqual(notes.splice(0), [
    "0 ms",
    "synced b 100",
    "longer is durable",
    "next segment is durable",
  ]);
  assert.equal(syncs.running, undefined);
});

it("nothing is synced where all is durable, also for those who waited", async () => {
  const { clock, running, files, owner, notes, syncs, ask } = setUp();
  ask("first");
  owner.end = { file: files.a, lengthBytes: 101 };
  ask("second");
  owner.isDurable = true;
  running[0].end();
  await clock.settle();
  ask("third");
  await clock.settle();
  assert.equal(running.length, 1);
  assert.deepEqual(notes.slice(-3), ["second is durable", "first is durable", "third is durable"]);
  syncs.now(files.a);
  assert.deepEqual([notes.at(-1), syncs.lastMs], ["3 ms", 3]);
});

it("a sync that fails is told to the log and to all who wait", async () => {
  const { clock, running, files, owner, notes, ask } = setUp();
  ask("first");
  owner.end = { file: files.a, lengthBytes: 101 };
  ask("second");
  running[0].end(new Error("EIO"));
  await clock.settle();
  assert.deepEqual(notes, ["EIO", "second is not", "first is not"]);
  assert.equal(running.length, 1);
});
