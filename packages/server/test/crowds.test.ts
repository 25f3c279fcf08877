/**
 * Crowds of one client: watches by the thousand, watches with huge keys, callers that wait for
 * locks and leaders. Other clients are served.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WATCH_BYTES, WATCH_LIMITS } from "@quorate/member";
import { ElectionService, fromLatin1, LockService, v3electionpb, v3lockpb } from "@quorate/proto";
import { type CallContext, LOCAL_CALL } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import { ClientCall } from "./support/client-call.ts";
import { type MemoryCall, WatchBench } from "./support/watching.ts";
import { World } from "./support/world.ts";

const LIMITS = {
  ...WATCH_LIMITS,
  maxWatchesTotalBytes: 300 * WATCH_BYTES,
  maxWatchesClientBytes: 200 * WATCH_BYTES,
};

function callFrom(bench: WatchBench, address: string): MemoryCall {
  const { call, stream } = bench.call({ address });
  assert.ok(stream !== undefined);
  return call;
}

describe("watches", () => {
  test("of one client are so many, over all of its streams; the next one is cancelled as it is made, and says why", async () => {
    const bench = await new WatchBench(LIMITS).open();
    const streams = [callFrom(bench, "10.6.6.6:1"), callFrom(bench, "10.6.6.6:2")];
    for (let i = 0; i < 1000; i++) streams[i % 2].create({ key: fromLatin1("k") });
    const answers = streams.flatMap((one) => one.read());
    const made = answers.filter((one) => one.created && !one.canceled);
    assert.ok(made.length > 190 && made.length < 200, `${made.length}`);
    assert.equal(bench.hub.feed.watcherCount, made.length);
    const refused = answers.filter((one) => one.canceled);
    assert.equal(refused.length, 1000 - made.length);
    assert.match(
      refused[0].cancelReason,
      /^etcdserver: too many watches: those of this client hold \d+ bytes of 204800, those of all \d+ of 307200$/,
    );
    assert.ok(refused.every((one) => one.created && one.watchId === -1));
    // Another client has its own, and they work.
    const other = callFrom(bench, "10.0.0.1:1");
    other.create({ key: fromLatin1("k") });
    bench.write({ k: "v" });
    await bench.run();
    assert.deepEqual(
      other.read().map((one) => [one.canceled, one.events.length]),
      [
        [false, 0],
        [false, 1],
      ],
    );
  });

  test("count with their keys", async () => {
    const bench = await new WatchBench(LIMITS).open();
    const call = callFrom(bench, "10.6.6.6:1");
    const key = new Uint8Array(50_000).fill(107);
    for (let i = 0; i < 10; i++) call.create({ key });
    assert.equal(bench.hub.feed.watcherCount, 2);
    assert.ok(bench.hub.watchBudget.usedBytes <= LIMITS.maxWatchesClientBytes);
  });

  test("free their capacity when they are cancelled, and when their stream or their connection ends", async () => {
    const bench = await new WatchBench(LIMITS).open();
    const first = callFrom(bench, "10.0.0.1:1");
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 150; i++) first.create({ key: fromLatin1("k"), watchId: i + 1 });
      for (let i = 0; i < 150; i++) first.cancel(i + 1);
      assert.equal(bench.hub.watchBudget.usedBytes, 0);
    }
    for (let i = 0; i < 150; i++) first.create({ key: fromLatin1("k") });
    first.listener.cancelled!();
    assert.deepEqual([bench.hub.watchBudget.usedBytes, bench.hub.feed.watcherCount], [0, 0]);
    // Those that a compaction ended count until the client takes them away.
    const late = callFrom(bench, "10.0.0.1:2");
    for (let i = 0; i < 5; i++) bench.write({ k: `${i}` });
    late.create({ key: fromLatin1("k"), startRevision: 1 });
    late.cancel(0);
    late.cancel(0);
    assert.equal(bench.hub.watchBudget.usedBytes, 0);
  });
});

describe("callers that wait", () => {
  const limits = {
    ...WATCH_LIMITS,
    maxContestTotalBytes: 12 * 8300,
    maxContestClientBytes: 8 * 8300,
  };
  const { Lock } = LockService.methods;
  const { Campaign, Observe } = ElectionService.methods;

  function context(path: string, address: string): CallContext & { giveUp(): void } {
    let listener = () => {};
    let cancelled = false;
    return {
      ...LOCAL_CALL,
      path,
      peerAddress: address,
      get cancelled() {
        return cancelled;
      },
      onCancel: (one) => {
        listener = one;
      },
      giveUp: () => {
        cancelled = true;
        listener();
      },
    };
  }

  test("for a lock or an election are so many of one client; when they give up, others can wait again", async () => {
    const world = new World(1, [], 1n, limits);
    await world.startAll();
    const member = world.nodes[0].member!;
    await world.until(() => member.leader !== 0n);
    const table = serviceTable(member);
    const results: string[] = [];
    const contexts: { giveUp(): void }[] = [];
    const ask = (address: string, path: string) => {
      const one = context(path, address);
      contexts.push(one);
      const name = fromLatin1("jobs");
      const bytes =
        path === Lock.path
          ? v3lockpb.LockRequest.encode({ name })
          : v3electionpb.CampaignRequest.encode({ name, value: fromLatin1("me") });
      Promise.resolve(table.unary.get(path)!(bytes, one)).then(
        () => results.push("has it"),
        (error: Error & { code: number }) => results.push(`${error.code} ${error.message}`),
      );
    };
    for (let i = 0; i < 20; i++) ask("10.6.6.6:1", i % 2 === 0 ? Lock.path : Campaign.path);
    await world.run(200);
    const refused = results.filter((result) =>
      result.startsWith("8 etcdserver: too many requests: too many callers wait"),
    );
    assert.equal(refused.length, 12);
    ask("10.0.0.1:1", Lock.path);
    await world.run(200);
    assert.equal(results.filter((result) => result.startsWith("8 ")).length, 12);
    for (const one of contexts) one.giveUp();
    await world.run(500);
    assert.equal(member.watches.contestBudget.usedBytes, 0);
    assert.equal(member.watches.feed.watcherCount, 0);
    await world.stopAll();
  });

  test("for news of an election are counted too", async () => {
    const world = new World(1, [], 1n, limits);
    await world.startAll();
    const member = world.nodes[0].member!;
    await world.until(() => member.leader !== 0n);
    const handler = serviceTable(member).stream.get(Observe.path)!;
    const observe = (address: string) => {
      const call = new ClientCall(Observe.path, { peerAddress: address });
      const listener = handler(call);
      listener.message!(v3electionpb.LeaderRequest.encode({ name: fromLatin1("jobs") }));
      return listener;
    };
    const observers = Array.from({ length: 8 }, () => observe("10.6.6.6:1"));
    assert.throws(() => observe("10.6.6.6:1"), { code: 8 });
    observers.push(observe("10.0.0.1:1"));
    await world.run(50);
    assert.equal(member.watches.feed.watcherCount, 9);
    for (const one of observers) one.cancelled!();
    await world.run(50);
    assert.deepEqual(
      [member.watches.contestBudget.usedBytes, member.watches.feed.watcherCount],
      [0, 0],
    );
    await world.stopAll();
  });
});
