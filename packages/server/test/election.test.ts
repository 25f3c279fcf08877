/** Elections on members in memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { ElectionService, fromUtf8, toUtf8, v3electionpb } from "@quorate/proto";
import { type ClientStream, grant, openStream, revoke } from "./support/leases.ts";
import { call, get, World } from "./support/world.ts";

const { Campaign, Proclaim, Leader, Observe, Resign } = ElectionService.methods;
const name = fromUtf8("office");

async function campaign(
  member: Member,
  lease: bigint,
  value: string,
): Promise<v3electionpb.LeaderKey> {
  const request = v3electionpb.CampaignRequest.encode({ name, lease, value: fromUtf8(value) });
  return v3electionpb.CampaignResponse.decode(await call(member, Campaign.path, request)).leader!;
}

function proclaim(
  member: Member,
  leader: v3electionpb.LeaderKey,
  value: string,
): Promise<Uint8Array> {
  return call(
    member,
    Proclaim.path,
    v3electionpb.ProclaimRequest.encode({ leader, value: fromUtf8(value) }),
  );
}

function resign(member: Member, leader: v3electionpb.LeaderKey): Promise<Uint8Array> {
  return call(member, Resign.path, v3electionpb.ResignRequest.encode({ leader }));
}

async function leaderOf(member: Member): Promise<string> {
  const { kv } = v3electionpb.LeaderResponse.decode(
    await call(member, Leader.path, v3electionpb.LeaderRequest.encode({ name })),
  );
  return toUtf8(kv!.value);
}

function observe(member: Member): ClientStream {
  const stream = openStream(member, Observe.path);
  stream.listener.message!(v3electionpb.LeaderRequest.encode({ name }));
  stream.listener.halfClosed?.();
  return stream;
}

function observed(stream: ClientStream): string[] {
  return stream.messages.map((bytes) =>
    toUtf8(v3electionpb.LeaderResponse.decode(bytes).kv!.value),
  );
}

async function started(size: number): Promise<World> {
  const world = new World(size);
  await world.startAll();
  await world.run(20);
  for (const id of [0xan, 0xbn, 0xcn])
    await world.settled(grant(world.leader()!.member!, id, 1000));
  return world;
}

test("leaders follow one another in the order of their campaigns; observers on any member hear all of it", async () => {
  const world = await started(3);
  const [one, two, three] = world.nodes.map((node) => node.member!) as [Member, Member, Member];
  const early = observe(three);
  await world.run(50);
  const a = await world.settled(campaign(one, 0xan, "ann"));
  assert.deepEqual([toUtf8(a.key), a.rev, a.lease], ["office/a", 2, 0xan]);
  const next = campaign(two, 0xbn, "bob");
  await world.run(50);
  await world.settled(proclaim(two, a, "ann again"));
  const late = observe(one);
  await world.run(50);
  assert.equal(await world.settled(leaderOf(three)), "ann again");
  await world.settled(resign(three, a));
  const b = await world.settled(next);
  await world.settled(revoke(one, 0xbn));
  await world.run(50);
  await assert.rejects(world.settled(leaderOf(two)), { code: 2, message: "election: no leader" });
  await assert.rejects(world.settled(proclaim(two, b, "late")), {
    code: 2,
    message: "election: not leader",
  });
  await world.settled(campaign(two, 0xcn, "cid"));
  await world.run(50);
  assert.deepEqual(observed(early), ["ann", "ann again", "bob", "cid"]);
  assert.deepEqual(observed(late), ["ann again", "bob", "cid"]);
  for (const stream of [early, late]) stream.listener.cancelled!();
  await world.run(50);
  for (const { member } of world.nodes) assert.equal(member!.watches.feed.watcherCount, 0);
  await world.stopAll();
});

test("a campaign that is repeated keeps its place and proclaims its new value", async () => {
  const world = await started(1);
  const member = world.nodes[0].member!;
  const first = await world.settled(campaign(member, 0xan, "x"));
  const second = await world.settled(campaign(member, 0xan, "y"));
  assert.equal(second.rev, first.rev);
  assert.equal(await world.settled(get(member, "office/a")), "y");
  await world.stopAll();
});

test("an observer that does not read hears the newest when it does", async () => {
  const world = await started(1);
  const member = world.nodes[0].member!;
  const stream = observe(member);
  stream.canSend = false;
  await world.run(10);
  const leader = await world.settled(campaign(member, 0xan, "0"));
  for (let i = 1; i <= 5; i++) {
    await world.settled(proclaim(member, leader, String(i)));
    await world.run(5);
  }
  assert.deepEqual(observed(stream), ["0"]);
  stream.canSend = true;
  stream.listener.drained!();
  assert.deepEqual(observed(stream), ["0", "5"]);
  stream.listener.cancelled!();
  await world.stopAll();
});

test("requests without a leader key are refused in etcd's words", async () => {
  const world = await started(1);
  const member = world.nodes[0].member!;
  const refusal = { code: 2, message: '"leader" field must be provided' };
  await assert.rejects(
    world.settled(call(member, Proclaim.path, v3electionpb.ProclaimRequest.encode({}))),
    refusal,
  );
  await assert.rejects(
    world.settled(call(member, Resign.path, v3electionpb.ResignRequest.encode({}))),
    refusal,
  );
  await world.stopAll();
});
