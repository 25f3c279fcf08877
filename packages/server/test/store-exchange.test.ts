/**
 * A received store takes the place of the one in use: what becomes of those who wait when it fails,
 * or the member stops meanwhile.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { StoreExchange, StoreRef } from "@quorate/member/testing";
import { CompactionRequest } from "@quorate/proto";
import type { Store } from "@quorate/store";
import { call, get, put, textOf, World } from "./support/world.ts";

test("an exchange that fails ends the member, and waiting reads get the error", async () => {
  const disk = new MemoryDisk();
  const fault = new Error("the store cannot be closed");
  const fatal: unknown[] = [];
  const store = new StoreRef({ close: () => Promise.reject(fault) } as unknown as Store);
  store.follow({ attach: () => assert.fail("there is no new store") });
  const exchange = new StoreExchange({
    disk,
    keyspaces: new MemoryKeyspaceOpener(disk),
    storeDir: "/store",
    storeOptions: { disk },
    faults: () => {},
    store,
    lifetime: { end: (error) => void fatal.push(error) },
  });
  const running = assert.rejects(exchange.run(7), fault);
  await assert.rejects(exchange.over(), { message: textOf("Stopped") });
  await running;
  assert.deepEqual(fatal, [fault]);
  assert.equal(exchange.isRunning, true, "there is nothing to read");
  await assert.rejects(exchange.over(), { message: textOf("Stopped") });
});

test("a physical compaction is answered when the store that took the place of the one in use is compacted, too", async () => {
  const slowly = ["--compaction-batch-limit", "2", "--compaction-sleep-interval", "20ms"];
  const world = new World(3, [
    "--snapshot-count",
    "20",
    "--snapshot-catchup-entries",
    "5",
    ...slowly,
  ]);
  await world.startAll();
  const node = world.nodes.find((one) => one !== world.leader())!;
  const member = node.member!;
  for (let i = 0; i < 300; i++) await world.settled(put(world.leader()!.member!, "k", `${i}`));
  let isAnswered = false;
  const compaction = call(
    member,
    "/etcdserverpb.KV/Compact",
    CompactionRequest.encode({ revision: 300, physical: true }),
  ).then(() => {
    isAnswered = true;
    assert.equal(member.isServable, true);
    assert.equal(member.store.mvcc.compactedRevision, 300);
    assert.equal(member.store.mvcc.isCompacting, false);
  });
  await world.until(() => member.store.mvcc.compactRevision === 300);
  world.cutOff.add(member.id);
  for (let i = 0; i < 60; i++) await world.settled(put(world.leader()!.member!, "k", `${i}`));
  assert.equal(
    isAnswered,
    false,
    "a test of nothing: the compaction is over before the store is exchanged",
  );
  const { keyspaces } = node;
  const open = keyspaces.open.bind(keyspaces);
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  keyspaces.open = async (path, options) => {
    if (!member.isServable) {
      isHeld = true;
      await held.promise;
    }
    return open(path, options);
  };
  world.cutOff.delete(member.id);
  await world.until(() => isHeld);
  await world.run(200);
  assert.equal(isAnswered, false, "there is no store that could be compacted");
  held.resolve();
  await world.settled(compaction);
  await world.stopAll();
});

test("a member that is stopped while a received store takes its place closes that store, and starts again on it", async () => {
  const world = new World(3, ["--snapshot-count", "20", "--snapshot-catchup-entries", "5"]);
  await world.startAll();
  const node = world.nodes.find((one) => one !== world.leader())!;
  const { keyspaces } = node;
  const member = node.member!;
  world.cutOff.add(member.id);
  for (let i = 0; i < 60; i++) await world.settled(put(world.leader()!.member!, "k", `${i}`));
  // The received store is written with one keyspace, and opened as another: that one is held.
  const open = keyspaces.open.bind(keyspaces);
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  keyspaces.open = async (path, options) => {
    if (!member.isServable) {
      isHeld = true;
      await held.promise;
    }
    return open(path, options);
  };
  world.cutOff.delete(member.id);
  await world.until(() => isHeld);
  const stopped = member.stop();
  await world.run(100);
  held.resolve();
  await world.settled(stopped);
  node.member = undefined;
  keyspaces.open = open;
  const again = await world.start(node);
  await world.until(() => again.appliedIndex >= world.leader()!.member!.appliedIndex);
  assert.equal(await world.settled(get(again, "k")), "59");
  await world.stopAll();
});
