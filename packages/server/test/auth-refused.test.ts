/**
 * A member refuses a store in which authentication is enabled, because it does not enforce users
 * and roles; a flag overrides that.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterService, fromUtf8, MemberAddRequest, MemberAddResponse } from "@quorate/proto";
import { call, get, type Node, put, World } from "./support/world.ts";

/** The bucket auth of the store, and etcd's record in it. */
const RECORD = fromUtf8("aauthEnabled");
const FLAG = "--unsafe-serve-without-auth";

/** Writes into the store of a member that is stopped. */
async function setAuth(world: World, { keyspaces }: Node, value: number): Promise<void> {
  const keyspace = await world.settled(keyspaces.open("/data/member/store/db", { create: false }));
  await world.settled(keyspace.write([{ key: RECORD, value: new Uint8Array([value]) }]));
  await world.settled(keyspace.close());
}

test("a start on such a store is refused, with the flag's name, and goes well with it", async () => {
  const world = new World(1);
  await world.startAll();
  const node = world.nodes[0];
  await world.settled(put(node.member!, "k", "v"));
  await world.stopAll();
  await setAuth(world, node, 1);
  for (let i = 0; i < 2; i++)
    await assert.rejects(
      world.start(node),
      /authentication is enabled in it, .* --unsafe-serve-without-auth/,
    );
  node.flags = [...node.flags, FLAG];
  const member = await world.start(node);
  await world.settled(member.ready);
  assert.equal(await world.settled(get(member, "k")), "v");
  await world.stopAll();
  // Disabled in etcd, or by a later release: no flag is needed.
  await setAuth(world, node, 0);
  node.flags = node.flags.filter((flag) => flag !== FLAG);
  await world.start(node);
  await world.stopAll();
});

test("a member without the flag takes no snapshot of such a store from one that has it", async () => {
  const world = new World(1, ["--snapshot-count=5", "--snapshot-catchup-entries=1"]);
  await world.startAll();
  const first = world.nodes[0];
  await world.stopAll();
  await setAuth(world, first, 1);
  first.flags = [...first.flags, FLAG];
  const leader = await world.start(first);
  await world.settled(leader.ready);
  for (let i = 0; i < 30; i++) await world.settled(put(leader, `k${i}`, "v"));

  const node = world.addNode([]);
  const request = MemberAddRequest.encode({ peerURLs: [node.peerUrl], isLearner: true });
  const { member: added } = MemberAddResponse.decode(
    await world.settled(call(leader, ClusterService.methods.MemberAdd.path, request)),
  );
  const cluster = `${first.name}=${first.peerUrl},${node.name}=${node.peerUrl}`;
  node.flags = ["--initial-cluster", cluster, "--initial-cluster-state", "existing"];
  const learner = await world.start(node);
  assert.equal(learner.id, added!.ID);
  let refusals = 0;
  const { listener } = node.request!;
  const { snapshotReceived } = listener;
  listener.snapshotReceived = (stream) =>
    snapshotReceived.call(listener, stream).catch((error: Error) => {
      assert.match(error.message, /authentication is enabled in it/);
      refusals++;
      throw error;
    });
  await world.until(() => refusals > 1);
  assert.equal(await world.settled(get(learner, "k0", true)), undefined, "nothing of it is served");
  await world.settled(learner.stop());
  node.flags = [...node.flags, FLAG];
  const again = await world.start(node);
  await world.until(() => again.appliedIndex === leader.appliedIndex);
  assert.equal(await world.settled(get(again, "k0", true)), "v");
  await world.stopAll();
});
