/** The ways into a member: whose a request is, and what is refused before and at apply. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { asMembersOwn, callerOf, uncancelled } from "@quorate/member";
import {
  ClusterService,
  errorOf,
  fromUtf8,
  KVService,
  LeaseService,
  LockService,
  type MethodDescriptor,
} from "@quorate/proto";
import { LOCAL_CALL } from "@quorate/rpc";
import { callAs, enableAuth, login } from "./support/users.ts";
import { World } from "./support/world.ts";

/** A member with users, and calls by their names. */
async function started() {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const tokens = new Map([["root", await enableAuth(world, member, "ann", "bob")]]);
  for (const name of ["ann", "bob"]) tokens.set(name, await world.settled(login(member, name)));
  const as = <M extends MethodDescriptor>(
    name: string,
    method: M,
    request: Parameters<M["requestType"]["encode"]>[0],
  ) => world.settled(callAs(member, tokens.get(name), method, request));
  return { world, member, as };
}

const { Put, Range } = KVService.methods;
const { Lock } = LockService.methods;
const { LeaseGrant } = LeaseService.methods;
const DENIED = { message: errorOf("PermissionDenied").message };

test("a proposal that is refused at apply changes nothing; one with a forged token is not made", async () => {
  const { world, member, as } = await started();
  await as("ann", Put, { key: fromUtf8("ann/k") });
  const revision = member.store.mvcc.currentRevision;
  await assert.rejects(as("bob", Put, { key: fromUtf8("ann/k") }), DENIED);
  assert.equal(member.store.mvcc.currentRevision, revision);
  const proposed = member.commitIndex;
  const forged = callAs(member, "forged", Put, { key: fromUtf8("ann/k") });
  await assert.rejects(world.settled(forged), { message: errorOf("InvalidAuthToken").message });
  assert.equal(member.commitIndex, proposed);
  await world.stopAll();
});

test("a lock and its watch are the caller's; what the member does itself is root's", async () => {
  const { world, member, as } = await started();
  const lease = 77n;
  await as("ann", LeaseGrant, { ID: lease, TTL: 2 });
  const { key } = await as("ann", Lock, { name: fromUtf8("ann/jobs"), lease });
  const denied = { message: DENIED.message, code: 2 };
  await assert.rejects(as("bob", Lock, { name: fromUtf8("ann/jobs") }), denied);
  await assert.rejects(as("ann", Lock, { name: fromUtf8("bob/jobs"), lease }), denied);
  await world.until(() => member.store.lessor.get(lease) === undefined);
  assert.equal((await as("ann", Range, { key })).kvs.length, 0);
  await world.stopAll();
});

test("an operation is admitted before it begins", async () => {
  const { world, as } = await started();
  const { MemberRemove } = ClusterService.methods;
  await assert.rejects(as("bob", MemberRemove, { ID: 1n }), DENIED);
  await assert.rejects(as("root", MemberRemove, { ID: 1n }), { message: /member not found/ });
  await world.stopAll();
});

test("a caller of rpc's call: the token of the metadata, the certificate, the client's address", () => {
  const metadata = new Map([["authorization", "gateway"]]);
  const context = {
    ...LOCAL_CALL,
    path: Put.path,
    metadata: (name: string) => metadata.get(name),
    peerAddress: "10.0.0.9:1234",
    peerCommonName: "ann",
  };
  const caller = callerOf(context);
  assert.equal(caller.token, "gateway");
  metadata.set("token", "grpc");
  assert.deepEqual(
    [caller.token, caller.commonName, caller.client, caller.address, caller.origin],
    ["grpc", "ann", "CN ann", "10.0.0.9:1234", "client"],
  );
  const own = asMembersOwn(caller);
  assert.deepEqual([own.token, own.commonName, own.client], ["grpc", "ann", ""]);
  let cancelled = false;
  uncancelled(callerOf({ ...context, cancelled: true })).onCancel(() => {
    cancelled = true;
  });
  assert.equal(cancelled, false);
});
