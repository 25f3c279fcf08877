/** Removals of one of two members: the one that is left must be able to lead, whatever happens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterService, MemberRemoveRequest, raftpb } from "@quorate/proto";
import { healthyWorld, list, remove } from "./support/membership.ts";
import { call, put, textOf } from "./support/world.ts";

const { MemberRemove } = ClusterService.methods;

test("of two members the leader is removed before the other hears that it was committed: it learns so from the removed one", async () => {
  const world = await healthyWorld(2);
  const old = world.leader()!;
  const stays = world.nodes.find((node) => node !== old)!;
  // From the moment that the other has the entry, until the removed member has ended its service,
  // nothing reaches the other.
  const applied = stays.member!.appliedIndex;
  const removing = remove(world, stays.member!, old.member!.id).catch(() => undefined);
  await world.until(() => old.member!.store.membership.isRemoved(old.member!.id));
  if (stays.member!.appliedIndex === applied) world.cutOff.add(stays.member!.id);
  await world.run(100);
  world.cutOff.clear();
  await world.until(() => world.leader() === stays);
  await removing;
  await world.settled(put(stays.member!, "k", "alone"));
  assert.equal((await list(world, stays.member!)).length, 1);
  await world.until(() => old.ended !== undefined);
  await world.stopAll();
});

test("of two members the leader is removed and stops before the other hears of it: started again, it lets the other lead", async () => {
  const world = await healthyWorld(2);
  const old = world.leader()!;
  const stays = world.nodes.find((node) => node !== old)!;
  const oldId = old.member!.id;
  // The other does not hear that it is to lead; then it gets the entry, and does not hear that it
  // is committed.
  const { listener } = stays.request!;
  const received = listener.received.bind(listener);
  Object.assign(listener, {
    received: (messages: readonly raftpb.Message[]) =>
      received(messages.filter(({ type }) => type !== raftpb.MessageType.MsgTimeoutNow)),
  });
  const before = old.member!.appliedIndex;
  old.passes = (point) => {
    if (point === "before-apply" && old.member!.commitIndex > before)
      world.cutOff.add(stays.member!.id);
  };
  const removing = call(
    old.member!,
    MemberRemove.path,
    MemberRemoveRequest.encode({ ID: oldId }),
  ).catch(() => undefined);
  await world.until(() => old.member!.store.membership.isRemoved(oldId));
  await world.settled(removing);
  old.passes = undefined;
  assert.equal(stays.member!.store.membership.isRemoved(oldId), false);
  await world.settled(old.member!.stop());
  old.member = undefined;
  world.cutOff.clear();
  // No other member can vote for the other.
  await world.run(5000);
  assert.equal(stays.member!.leader, 0n);
  const again = await world.start(old);
  await assert.rejects(world.settled(put(again, "k", "served by none")), {
    message: textOf("Stopped"),
  });
  await world.until(() => stays.member!.isLeader);
  await world.settled(put(stays.member!, "k", "alone"));
  assert.equal((await list(world, stays.member!)).length, 1);
  await world.until(() => old.ended !== undefined);
  assert.match(
    (old.ended!.error as Error).message,
    /permanently removed from the cluster; its data in \/data cannot be used/,
  );
  await world.stopAll();
});

for (const removes of ["leader", "follower"] as const) {
  test(`of two members the ${removes} is removed and has ended when the other crashes: started again, it leads alone`, async () => {
    // The store does not have what was committed last.
    const world = await healthyWorld(2, ["--backend-batch-interval", "60s"]);
    const leader = world.leader()!;
    const follower = world.nodes.find((node) => node !== leader)!;
    const [old, stays] = removes === "leader" ? [leader, follower] : [follower, leader];
    await remove(world, stays.member!, old.member!.id);
    await world.until(() => old.ended !== undefined);
    stays.member = undefined;
    stays.disk.crash(world.random.fork(removes));
    const again = await world.start(stays);
    await world.until(() => again.isLeader);
    await world.settled(put(again, "k", "alone"));
    assert.equal((await list(world, again)).length, 1);
    await world.stopAll();
  });
}
