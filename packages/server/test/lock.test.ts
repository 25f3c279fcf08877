/** Locks on members in memory: order, giving up, leases that end while their owner waits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { fromUtf8, LockService, toUtf8, v3lockpb } from "@quorate/proto";
import type { CallContext } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import { grant, revoke, timeToLive } from "./support/leases.ts";
import { call, get, put, World } from "./support/world.ts";

const { Lock, Unlock } = LockService.methods;

/** A call for a lock that its caller can give up. */
function lock(
  member: Member,
  lease: bigint,
  name = "jobs",
): { result: Promise<v3lockpb.LockResponse>; cancel: () => void } {
  let cancelled = false;
  let listener = () => {};
  const context: CallContext = {
    path: Lock.path,
    metadata: () => undefined,
    deadlineMs: undefined,
    peerAddress: "",
    peerCommonName: undefined,
    trace: undefined,
    get cancelled() {
      return cancelled;
    },
    onCancel: (one) => {
      listener = one;
    },
  };
  const answer = serviceTable(member).unary.get(Lock.path)!(
    v3lockpb.LockRequest.encode({ name: fromUtf8(name), lease }),
    context,
  );
  const result = Promise.resolve(answer).then((bytes) =>
    v3lockpb.LockResponse.decode(bytes as Uint8Array),
  );
  return {
    result,
    cancel: () => {
      cancelled = true;
      listener();
    },
  };
}

function unlock(member: Member, key: string): Promise<Uint8Array> {
  return call(member, Unlock.path, v3lockpb.UnlockRequest.encode({ key: fromUtf8(key) }));
}

async function started(size: number): Promise<World> {
  const world = new World(size);
  await world.startAll();
  await world.run(20);
  return world;
}

/** Notes results as they come. */
function noting(asked: { result: Promise<v3lockpb.LockResponse> }, notes: string[]): void {
  asked.result.then(
    ({ key }) => notes.push(toUtf8(key)),
    (error: Error) => notes.push(error.message),
  );
}

test("the lock goes to those who wait in the order in which they came, through any member, with growing tokens", async () => {
  const world = await started(3);
  const members = world.nodes.map((node) => node.member!);
  for (let id = 1n; id <= 4n; id++) await world.settled(grant(members[0], id + 9n, 100));
  const notes: string[] = [];
  const asked: ReturnType<typeof lock>[] = [];
  for (let i = 0; i < 4; i++) {
    asked.push(lock(members[i % 3], BigInt(10 + i)));
    noting(asked[i], notes);
    await world.run(50);
  }
  assert.deepEqual(notes, ["jobs/a"]);
  for (const key of ["jobs/a", "jobs/b", "jobs/c"]) {
    await world.settled(unlock(members[2], key));
    await world.run(100);
  }
  assert.deepEqual(notes, ["jobs/a", "jobs/b", "jobs/c", "jobs/d"]);
  const answers = await Promise.all(asked.map(({ result }) => result));
  const tokens = answers.map(({ createRevision }) => createRevision);
  assert.deepEqual(tokens, [2, 3, 4, 5]);
  for (const { header, createRevision } of answers) assert.ok(header!.revision >= createRevision);
  await world.stopAll();
});

test("a holder locks again and keeps its lock and token; one without a lease gets one of a minute", async () => {
  const world = await started(1);
  const member = world.nodes[0].member!;
  await world.settled(grant(member, 10n, 100));
  const first = await world.settled(lock(member, 10n).result);
  await world.settled(put(member, "other", "x"));
  const again = await world.settled(lock(member, 10n).result);
  assert.equal(again.createRevision, first.createRevision);
  const own = await world.settled(lock(member, 0n, "other").result);
  const lease = BigInt(`0x${toUtf8(own.key).slice("other/".length)}`);
  assert.equal((await world.settled(timeToLive(member, lease))).grantedTTL, 60);
  await assert.rejects(world.settled(lock(member, 404n, "third").result), {
    code: 2,
    message: "etcdserver: requested lease not found",
  });
  await world.stopAll();
});

test("a waiter that gives up leaves the line; one that loses its lease gets an error", async () => {
  const world = await started(3);
  const member = world.leader()!.member!;
  for (const id of [10n, 11n, 12n, 13n]) await world.settled(grant(member, id, 100));
  await world.settled(lock(member, 10n).result);
  const notes: string[] = [];
  const waiting = [11n, 12n, 13n].map((id) => lock(member, id));
  for (const one of waiting) {
    noting(one, notes);
    await world.run(50);
  }
  waiting[0].cancel();
  await world.run(100);
  assert.equal(await world.settled(get(member, "jobs/b")), undefined);
  await world.settled(revoke(member, 12n));
  await world.settled(unlock(member, "jobs/a"));
  await world.run(200);
  // The last two wait for the same key, and no order is promised between their answers.
  assert.deepEqual(
    [notes[0], ...notes.slice(1).sort()],
    ["etcdserver: request canceled", "jobs/d", "mutex: session is expired"],
  );
  await world.stopAll();
});

test("the lock of a holder that is gone passes on when its lease ends, also after the leader has changed", async () => {
  const world = await started(3);
  const old = world.leader()!;
  const member = world.nodes.find((node) => node !== old)!.member!;
  await world.settled(grant(member, 10n, 3));
  await world.settled(grant(member, 11n, 100));
  await world.settled(lock(member, 10n).result);
  const notes: string[] = [];
  noting(lock(member, 11n), notes);
  await world.run(1000);
  world.cutOff.add(old.member!.id);
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  await world.run(3000);
  assert.deepEqual(notes, []);
  await world.run(2000);
  assert.deepEqual(notes, ["jobs/b"]);
  world.cutOff.clear();
  await world.stopAll();
});
