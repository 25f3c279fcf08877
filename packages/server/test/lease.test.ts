/**
 * Leases on members in memory: who counts the time, and that no lease ends early, late, or twice.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { LeaseKeepAliveResponse } from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";
import {
  answers,
  grant,
  keepAlive,
  list,
  openKeepAlive,
  putLeased,
  revoke,
  sendKeepAlive,
  timeToLive,
} from "./support/leases.ts";
import { get, put, textOf, World } from "./support/world.ts";

/** Looks for expired leases happen so often; then the revocation has to go through. */
const MOST_LAG_MS = 130;

function leaderOf(world: World): Member {
  return world.leader()!.member!;
}

function followerOf(world: World): Member {
  return world.nodes.find((node) => node !== world.leader() && node.member !== undefined)!.member!;
}

async function started(size: number, flags: readonly string[] = []): Promise<World> {
  const world = new World(size, flags);
  await world.startAll();
  await world.until(() => world.leader() !== undefined && leaderOf(world).leases !== undefined);
  await world.run(20);
  return world;
}

const alive = (world: World, member: Member, id: bigint) =>
  keepAlive(member, id, (done) => world.until(done));

test("a lease ends after its time, with its keys, on every member, and not before", async () => {
  const world = await started(3);
  const leader = leaderOf(world);
  await world.settled(grant(leader, 7n, 5));
  const grantedMs = world.clock.monotonicMs();
  await world.settled(putLeased(leader, "b", 7n));
  await world.settled(putLeased(followerOf(world), "a", 7n));
  await world.settled(put(leader, "c", "stays"));
  const { mvcc } = leader.store;
  const revision = mvcc.currentRevision;
  await world.run(4990 - (world.clock.monotonicMs() - grantedMs));
  assert.equal(await world.settled(get(leader, "a")), "v");
  await world.until(() => !leader.store.lessor.exists(7n));
  const tookMs = world.clock.monotonicMs() - grantedMs;
  assert.ok(tookMs >= 5000 - 10 && tookMs <= 5000 + MOST_LAG_MS, `expired after ${tookMs} ms`);
  // One revision for all keys.
  assert.equal(mvcc.currentRevision, revision + 1);
  await world.run(200);
  for (const { member } of world.nodes) {
    assert.equal(member!.store.lessor.count, 0);
    assert.equal(await world.settled(get(member!, "a")), undefined);
    assert.equal(await world.settled(get(member!, "c")), "stays");
    assert.equal(member!.metrics.leasesRevoked.value, 1);
  }
  assert.equal(leader.metrics.leasesExpired.value, 1);
  await world.stopAll();
});

test("grants: chosen and given ids, the minimum and the maximum time, ids that are taken", async () => {
  const world = await started(1);
  const member = leaderOf(world);
  const chosen = await world.settled(grant(member, 0n, 60));
  assert.ok(chosen.ID > 0n && chosen.ID < 2n ** 63n);
  assert.equal(chosen.TTL, 60);
  // One and a half election timeouts of 1 s.
  assert.deepEqual((await world.settled(grant(member, 5n, 1))).TTL, 2);
  assert.deepEqual((await world.settled(grant(member, 6n, -9))).TTL, 2);
  assert.deepEqual((await world.settled(grant(member, -6n, 9_000_000_000))).TTL, 9_000_000_000);
  await assert.rejects(world.settled(grant(member, 8n, 9_000_000_001)), {
    message: textOf("LeaseTTLTooLarge"),
  });
  await assert.rejects(world.settled(grant(member, 5n, 10)), { message: textOf("LeaseExist") });
  await assert.rejects(world.settled(putLeased(member, "k", 99n)), {
    message: textOf("LeaseNotFound"),
  });
  await assert.rejects(world.settled(revoke(member, 99n)), { message: textOf("LeaseNotFound") });
  assert.deepEqual(await world.settled(list(member)), [5n, 6n, chosen.ID, -6n]);
  await world.settled(revoke(member, chosen.ID));
  assert.deepEqual(await world.settled(list(member)), [5n, 6n, -6n]);
  await world.stopAll();
});

test("keep-alives through any member keep a lease; unknown ones get 0; answers keep their order", async () => {
  const world = await started(3);
  const leader = leaderOf(world);
  const follower = followerOf(world);
  await world.settled(grant(follower, 7n, 3));
  const stream = openKeepAlive(follower);
  for (let i = 0; i < 8; i++) {
    await world.run(1500);
    sendKeepAlive(stream, 7n);
    sendKeepAlive(stream, 404n);
  }
  await world.until(() => stream.messages.length === 16);
  assert.deepEqual(
    answers(stream),
    Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? [7n, 3] : [404n, 0])),
  );
  assert.equal(leader.metrics.leasesRenewed.value, 8);
  assert.equal(follower.metrics.leasesRenewed.value, 0);
  // Nothing of it went through the log.
  assert.equal(await world.settled(alive(world, leader, 7n)), 3);
  const left = await world.settled(timeToLive(follower, 7n));
  assert.deepEqual([left.TTL, left.grantedTTL], [2, 3]);
  stream.listener.halfClosed!();
  assert.deepEqual(stream.status, { code: 0, message: "" });
  await world.until(() => !follower.store.lessor.exists(7n));
  assert.equal(await world.settled(alive(world, follower, 7n)), 0);
  await world.stopAll();
});

test("time to live: keys in order, -1 for no lease, from any member", async () => {
  const world = await started(3);
  const follower = followerOf(world);
  await world.settled(grant(follower, 7n, 100));
  for (const key of ["b", "c", "a"]) await world.settled(putLeased(follower, key, 7n));
  await world.settled(put(follower, "c", "of no lease any more"));
  for (const member of [follower, leaderOf(world)]) {
    const { TTL, grantedTTL, keys } = await world.settled(timeToLive(member, 7n, true));
    assert.equal(TTL, 99);
    assert.equal(grantedTTL, 100);
    assert.deepEqual(
      keys.map(String),
      [Buffer.from("a"), Buffer.from("b")].map((key) => String(new Uint8Array(key))),
    );
    assert.deepEqual((await world.settled(timeToLive(member, 7n))).keys, []);
    const none = await world.settled(timeToLive(member, 8n, true));
    assert.deepEqual([none.TTL, none.grantedTTL], [-1, 0]);
  }
  await world.stopAll();
});

test("a new leader starts every lease's time again, with the election timeout on top", async () => {
  const world = await started(3);
  const old = world.leader()!;
  await world.settled(grant(old.member!, 7n, 5));
  await world.run(4000);
  world.cutOff.add(old.member!.id);
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  const leader = leaderOf(world);
  const electedMs = world.clock.monotonicMs();
  world.cutOff.clear();
  await world.until(() => !leader.store.lessor.exists(7n));
  const tookMs = world.clock.monotonicMs() - electedMs;
  assert.ok(
    tookMs >= 6000 && tookMs <= 6000 + MOST_LAG_MS + 100,
    `expired ${tookMs} ms after the election`,
  );
  await world.run(500);
  for (const { member } of world.nodes) assert.equal(member!.metrics.leasesRevoked.value, 1);
  await world.stopAll();
});

test("a leader without a quorum renews nothing, and revokes nothing that its successor has renewed", async () => {
  const world = await started(3);
  const old = world.leader()!;
  await world.settled(grant(old.member!, 7n, 12));
  // It expires by the old leader's count before that one knows that it is alone.
  await world.run(11_500);
  world.cutOff.add(old.member!.id);
  // The confirmation of a moment ago serves for a heartbeat at the most.
  await world.run(110);
  const refused = alive(world, old.member!, 7n).then(
    () => "renewed",
    (error: Error) => error.message,
  );
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  const leader = leaderOf(world);
  assert.equal(await world.settled(alive(world, leader, 7n)), 12);
  assert.ok([textOf("Timeout"), textOf("NoLeader")].includes(await world.settled(refused)));
  world.cutOff.clear();
  for (let i = 0; i < 5; i++) {
    await world.run(3000);
    assert.equal(await world.settled(alive(world, old.member!, 7n)), 12);
  }
  await world.stopAll();
});

test("what is left of a long lease survives a restart of all; a renewal takes it back", async () => {
  const world = await started(3);
  let leader = leaderOf(world);
  await world.settled(grant(leader, 7n, 400));
  await world.settled(grant(leader, 8n, 400));
  await world.run(300_300);
  const { lessor } = leader.store;
  assert.equal(lessor.get(7n)!.remainingSeconds, 100);
  assert.equal(await world.settled(alive(world, followerOf(world), 8n)), 400);
  assert.equal(lessor.get(8n)!.remainingSeconds, 0);
  await world.stopAll();
  await world.startAll();
  await world.run(100);
  leader = leaderOf(world);
  const seven = await world.settled(timeToLive(leader, 7n));
  assert.ok(seven.TTL >= 99 && seven.TTL <= 101, `${seven.TTL} s are left`);
  assert.equal(seven.grantedTTL, 400);
  assert.ok((await world.settled(timeToLive(leader, 8n))).TTL >= 399);
  await world.stopAll();
});

/** The pieces of a response: the header's, and the rest. */
const pieces = (message: MessageBytes | undefined): readonly Uint8Array[] =>
  message === undefined || message instanceof Uint8Array ? [] : message;

const headerOf = (bytes: Uint8Array) => LeaseKeepAliveResponse.decode(bytes).header!;

test("renewals of one lease on a stream encode nothing, until the answer changes", async () => {
  const world = await started(1);
  const member = leaderOf(world);
  await world.settled(grant(member, 7n, 5));
  const stream = openKeepAlive(member);
  const next = async () => {
    const had = stream.sent.length;
    sendKeepAlive(stream, 7n);
    await world.until(() => stream.sent.length > had);
    return pieces(stream.sent.at(-1));
  };
  await next();
  await next();
  const [header, rest] = await next();
  assert.ok(header !== undefined && rest !== undefined);
  const again = await next();
  assert.ok(again[0] === header && again[1] === rest);
  assert.equal(stream.turns, 0, "neither paused nor resumed");
  const { revision } = headerOf(stream.messages.at(-1)!);
  // A new revision is in the header at once; the rest is as it was.
  await world.settled(put(member, "a", "v"));
  const behindPut = await next();
  assert.equal(headerOf(stream.messages.at(-1)!).revision, revision + 1);
  assert.ok(behindPut[0] !== header && behindPut[1] === rest);
  assert.equal(member.metrics.leasesRenewed.value, 5);
  // A request of more than 16 bytes is decoded each time: here, by a field that nothing reads.
  const long = Uint8Array.from([8, 7, 0x1a, 15, ...new Uint8Array(15)]);
  for (let i = 0; i < 3; i++) stream.listener.message!(long);
  const behindLong = stream.sent.slice(-2).map((message) => pieces(message)[1]);
  assert.deepEqual(behindLong[0], behindLong[1]);
  assert.ok(behindLong[0] !== behindLong[1]);
  // A lease of the same id is another one.
  await world.settled(revoke(member, 7n));
  await next();
  await world.settled(grant(member, 7n, 9));
  await next();
  await next();
  await next();
  assert.deepEqual(answers(stream).slice(-4), [
    [7n, 0],
    [7n, 9],
    [7n, 9],
    [7n, 9],
  ]);
  await world.stopAll();
});

test("a repeated renewal is not answered by a member that has stopped leading", async () => {
  const world = await started(3);
  const leader = leaderOf(world);
  await world.settled(grant(leader, 7n, 60));
  const stream = openKeepAlive(leader);
  for (let sent = 1; sent <= 3; sent++) {
    sendKeepAlive(stream, 7n);
    await world.until(() => stream.sent.length === sent);
  }
  const renewed = leader.metrics.leasesRenewed.value;
  await world.settled(leader.leadership.move(followerOf(world).id));
  sendKeepAlive(stream, 7n);
  await world.until(() => stream.sent.length === 4);
  assert.deepEqual(answers(stream).at(-1), [7n, 60]);
  assert.equal(leader.metrics.leasesRenewed.value, renewed, "the new leader renewed it");
  await world.stopAll();
});

test("a stream that is not read gets its answers when it is, and takes no more meanwhile", async () => {
  const world = await started(1);
  const member = leaderOf(world);
  await world.settled(grant(member, 7n, 5));
  const stream = openKeepAlive(member);
  stream.canSend = false;
  for (let i = 0; i < 10; i++) sendKeepAlive(stream, 7n);
  await world.run(5);
  assert.equal(stream.messages.length, 1);
  assert.ok(stream.isPaused);
  stream.canSend = true;
  stream.listener.drained!();
  assert.equal(stream.messages.length, 10);
  assert.ok(!stream.isPaused);
  await world.stopAll();
});

test("keep-alives that wait for their answers are bounded", async () => {
  const world = await started(3);
  const follower = followerOf(world);
  const stream = openKeepAlive(follower);
  for (let i = 0; i < 1023; i++) sendKeepAlive(stream, BigInt(i + 1));
  assert.ok(!stream.isPaused);
  sendKeepAlive(stream, 5000n);
  assert.ok(stream.isPaused);
  await world.until(() => stream.messages.length === 1024);
  assert.ok(!stream.isPaused);
  await world.stopAll();
});
