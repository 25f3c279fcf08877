/** Reads, leases and estimates while users and roles are enforced. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { SLICE_LIMITS } from "@quorate/member/testing";
import {
  AuthService,
  fromUtf8,
  KVService,
  LeaseKeepAliveRequest,
  LeaseService,
  PutRequest,
  TxnRequest,
} from "@quorate/proto";
import { callAs, enableAuth, login, openAs } from "./support/users.ts";
import { World } from "./support/world.ts";

const { Range, Put } = KVService.methods;
const { LeaseGrant, LeaseKeepAlive, LeaseTimeToLive, LeaseLeases } = LeaseService.methods;
const { UserAdd } = AuthService.methods;
const b = fromUtf8;
const DENIED = { message: "etcdserver: permission denied" };
const EMPTY_USER = { message: "etcdserver: user name is empty" };

/** Puts keys of ann's, a hundred at a time. */
async function fill(world: World, member: Member, token: string, count: number, lease: bigint) {
  for (let from = 0; from < count; from += 100) {
    const success = Array.from({ length: 100 }, (_, i) => {
      const value = PutRequest.create({ key: b(`ann/${from + i}`), lease });
      return { request: { case: "requestPut", value } } as const;
    });
    const txn = TxnRequest.create({ success });
    await world.settled(callAs(member, token, KVService.methods.Txn, txn));
  }
}

test("reads that take several turns are refused if users change meanwhile", async () => {
  const world = new World(1);
  world.sliceLimits = { ...SLICE_LIMITS, turnSteps: 1, quantumSteps: 1 };
  await world.startAll();
  const member = world.nodes[0].member!;
  const root = await enableAuth(world, member, "ann");
  const ann = await world.settled(login(member, "ann"));
  await fill(world, member, ann, 3000, 0n);
  const all = callAs(member, ann, Range, { key: b("ann/"), rangeEnd: b("ann0") });
  const change = callAs(member, root, UserAdd, { name: "x", options: { noPassword: true } });
  await assert.rejects(world.settled(all), {
    message: "etcdserver: revision of auth store is old",
  });
  await world.settled(change);
  await world.stopAll();
});

test("what leases show and who may renew them depends on their keys", async () => {
  const world = new World(3);
  await world.startAll();
  for (const node of world.nodes) if (node.member === undefined) assert.fail();
  const leader = world.leader()!.member!;
  const follower = world.nodes.find(({ member }) => member !== leader)!.member!;
  const root = await enableAuth(world, leader, "ann", "bob");
  const ann = await world.settled(login(leader, "ann"));
  const bob = await world.settled(login(leader, "bob"));
  await world.settled(callAs(leader, ann, LeaseGrant, { ID: 7n, TTL: 600 }));
  await fill(world, leader, ann, 1500, 7n);
  await world.run(50);
  for (const member of [leader, follower]) {
    const ask = (token: string, keys: boolean) =>
      world.settled(callAs(member, token, LeaseTimeToLive, { ID: 7n, keys }));
    assert.equal((await ask(ann, true)).keys.length, 1500);
    assert.equal((await ask(bob, false)).keys.length, 0);
    await assert.rejects(ask(bob, true), DENIED);
    await assert.rejects(world.settled(callAs(member, bob, LeaseLeases, {})), DENIED);
    assert.equal((await world.settled(callAs(member, ann, LeaseLeases, {}))).leases.length, 1);
    assert.equal((await world.settled(callAs(member, root, LeaseLeases, {}))).leases.length, 1);
    const refused = openAs(member, LeaseKeepAlive.path, bob);
    refused.listener.message!(LeaseKeepAliveRequest.encode({ ID: 7n }));
    await world.until(() => refused.ends.length === 1);
    assert.equal(refused.ends[0]?.message, DENIED.message);
    const renewed = openAs(member, LeaseKeepAlive.path, ann);
    renewed.listener.message!(LeaseKeepAliveRequest.encode({ ID: 7n }));
    await world.until(() => renewed.messages.length === 1);
    renewed.listener.cancelled!();
  }
  await world.stopAll();
});

test("the size of a response to a write is not estimated for those that may not have it", async () => {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const root = await enableAuth(world, member, "ann");
  const ann = await world.settled(login(member, "ann"));
  const { DeleteRange, Txn } = KVService.methods;
  const value = new Uint8Array(1 << 20);
  for (let i = 0; i < 130; i++) {
    await world.settled(callAs(member, root, Put, { key: b(`big/${i}`), value }));
  }
  const wide = { key: b("big/"), rangeEnd: b("big0"), prevKv: true };
  const op = { request: { case: "requestDeleteRange", value: wide } } as const;
  const txn = TxnRequest.decode(TxnRequest.encode({ success: [op], failure: [] }));
  const tooLarge = /etcdserver: .*too/;
  for (const ask of [
    (token?: string): Promise<object> => callAs(member, token, DeleteRange, wide),
    (token?: string): Promise<object> => callAs(member, token, Txn, txn),
  ]) {
    await assert.rejects(world.settled(ask(undefined)), EMPTY_USER);
    await assert.rejects(world.settled(ask(ann)), DENIED);
    await assert.rejects(world.settled(ask(root)), tooLarge);
  }
  await world.stopAll();
});
