/**
 * Linearizable reads through a member that is helped up by a snapshot: none may see the store from
 * before it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { get, put, World } from "./support/world.ts";

test("reads that wait while a snapshot is installed are answered from the store that it brings", async () => {
  const world = new World(3, ["--snapshot-count", "5", "--snapshot-catchup-entries", "1"]);
  await world.startAll();
  const leader = world.leader()!;
  const behind = world.nodes.find((node) => node !== leader)!;
  await world.settled(put(leader.member!, "k", "old"));
  await world.until(() => behind.member!.store.mvcc.currentRevision === 2);
  world.cutOff.add(behind.member!.id);
  for (let i = 0; i < 40; i++) await world.settled(put(leader.member!, "k", `new ${i}`));
  await world.run(3000);
  // The round of the reads is answered before the snapshot has come, and a slow disk takes its time
  // to take that in.
  behind.syncMs = 300;
  const { listener } = behind.request!;
  const take = listener.snapshotReceived.bind(listener);
  listener.snapshotReceived = async (stream) => {
    await new Promise<void>((resolve) => world.clock.after(50, resolve));
    return take(stream);
  };
  world.cutOff.delete(behind.member!.id);
  const reads: Promise<string | undefined>[] = [];
  await world.until(() => {
    if (reads.length < 400) reads.push(get(behind.member!, "k"));
    return behind.member!.store.mvcc.currentRevision > 40;
  });
  assert.ok(reads.length > 50, `${reads.length} reads before the store was there`);
  const values = await world.settled(Promise.all(reads));
  assert.deepEqual(new Set(values), new Set(["new 39"]));
  await world.stopAll();
});
