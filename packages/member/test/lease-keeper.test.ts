/**
 * The leader's count of the leases' time on a clock by hand: the rate, the spread, confirmations,
 * checkpoints, many leases.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  InternalRaftRequest,
  LeaseCheckpointRequest,
} from "@quorate/proto";
import { LEASE_CHECKPOINT_INTERVAL_MS, NotPrimaryError } from "../src/lease/keeper.ts";
import { Bench, BOUNDS, SlowStepsClock } from "./support/lease-bench.ts";

/** More than many turns take. */
const COUNT = process.env["QUORATE_SOAK"] === "1" ? 100_000 : 2500;

test("many leases that were kept alive over their time expire within a second of their time when that stops, none before", async (t) => {
  const bench = await Bench.open();
  await bench.lead();
  const ttl = Math.ceil((3 * COUNT) / 80);
  for (let id = 1; id <= COUNT; id++) bench.grant(BigInt(id), ttl);
  // Two rounds of renewals, a third of the time to live each, spread evenly: 80 a second, which is
  // within the rate of revocations.
  const dueMs = new Map<bigint, number>();
  for (let round = 0; round < 2; round++) {
    const perStep = 8;
    for (let step = 0; step < COUNT / perStep; step++) {
      for (let i = 0; i < perStep; i++) {
        const id = BigInt(step * perStep + i + 1);
        const renewed = bench.keeper.renew(id);
        if (typeof renewed !== "number") await renewed;
        dueMs.set(id, bench.clock.monotonicMs() + ttl * 1000);
      }
      bench.clock.advance(100);
    }
  }
  assert.equal(bench.store.lessor.count, COUNT);
  assert.equal(bench.counters.renewed.value, 2 * COUNT);
  await bench.run((ttl + 5) * 1000, 50);
  assert.equal(bench.store.lessor.count, 0);
  assert.equal(bench.counters.expired.value, COUNT);
  const lagsMs = [...bench.revokedMs].map(([id, ms]) => ms - dueMs.get(id)!).sort((a, b) => a - b);
  assert.ok(lagsMs[0] >= 0, `a lease expired ${-lagsMs[0]} ms early`);
  t.diagnostic(
    `lag: p50 ${lagsMs[COUNT / 2]} ms, p99 ${lagsMs[Math.floor(COUNT * 0.99)]} ms, most ${lagsMs.at(-1)} ms`,
  );
  assert.ok(
    lagsMs[Math.floor(COUNT * 0.99)] < 1000,
    `p99 of the lag is ${lagsMs[Math.floor(COUNT * 0.99)]} ms`,
  );
});

test("a new leader counts many leases over several turns; what comes and goes meanwhile is counted once, or not", async () => {
  const bench = await Bench.open({ clock: new SlowStepsClock() });
  for (let id = 1; id <= COUNT; id++) bench.grant(BigInt(id), 60);
  const ends: (() => void)[] = [];
  const { endOfTurn } = bench.clock;
  bench.clock.endOfTurn = (task) => ends.push(task);
  bench.keeper.leads(1);
  let turns = 0;
  for (; !bench.keeper.isPrimary && turns < COUNT; turns++) {
    await turn();
    if (turns === 0) {
      assert.throws(() => bench.keeper.renew(1n), NotPrimaryError);
      for (const id of [BigInt(COUNT), 7n]) bench.revoke(id);
      bench.grant(7n, 50);
    } else if (turns === 1) bench.grant(BigInt(COUNT + 1), 50);
    // All are counted, and being put in order.
    else if (turns === 3) bench.revoke(500n);
    for (const task of ends.splice(0)) task();
  }
  bench.clock.endOfTurn = endOfTurn;
  await turn();
  assert.ok(turns >= 2 && turns < COUNT, `${turns} turns`);
  for (const id of [BigInt(COUNT), 500n]) assert.equal(bench.keeper.remainingMs(id), undefined);
  for (const id of [7n, BigInt(COUNT + 1)])
    assert.ok(bench.keeper.remainingMs(id)! >= 50_000, `lease ${id}`);
  assert.equal(await bench.keeper.renew(5n), 60);
  await bench.run(100_000 + 20 * COUNT, 100);
  assert.equal(bench.store.lessor.count, 0);
  assert.equal(bench.counters.expired.value, COUNT - 1);
});

test("a member that ceases to lead while it counts does not go on", async () => {
  const bench = await Bench.open({ clock: new SlowStepsClock() });
  for (let id = 1; id <= COUNT; id++) bench.grant(BigInt(id), 2);
  const { endOfTurn, every } = bench.clock;
  let turns = 0;
  let timers = 0;
  bench.clock.endOfTurn = (task) => {
    turns++;
    endOfTurn.call(bench.clock, task);
  };
  bench.clock.every = (periodMs, task) => {
    timers++;
    return every.call(bench.clock, periodMs, task);
  };
  bench.keeper.leads(1);
  await turn();
  bench.clock.endOneTurn();
  assert.ok(turns > 1 && !bench.keeper.isPrimary, "it is about to go on");
  bench.keeper.steppedDown();
  turns = 0;
  for (let i = 0; i < 100; i++) {
    bench.clock.endOneTurn();
    await turn();
  }
  await bench.run(10_000, 100);
  assert.ok(turns <= 2, `${turns} turns more`);
  assert.equal(timers, 0, "it looks for leases that are due");
  assert.deepEqual(
    [bench.keeper.isPrimary, bench.queue.length, bench.revokedMs.size],
    [false, 0, 0],
  );
});

test("many leases that are due at once, renewed or not, are looked at and revoked over many turns", async () => {
  const bench = await Bench.open();
  await bench.lead();
  for (let id = 1; id <= COUNT; id++) bench.grant(BigInt(id), 10);
  await bench.run(5000, 100);
  for (let id = 1; id <= COUNT; id++) await bench.keeper.renew(BigInt(id));
  let turns = 0;
  const { endOfTurn } = bench.clock;
  bench.clock.endOfTurn = (task) => {
    turns++;
    endOfTurn.call(bench.clock, task);
  };
  // The time that the heap has for them comes, and they turn out to be renewed.
  await bench.run(6000, 100);
  assert.equal(bench.revokedMs.size, 0);
  assert.ok(turns >= COUNT / BOUNDS.maxLooksPerTurn - 1, `${turns} turns`);
  await bench.run(25_000 + 2 * COUNT, 100);
  assert.equal(bench.revokedMs.size, COUNT);
  assert.equal(bench.mostProposed, BOUNDS.maxRevokesPerTurn);
});

test("revocations have a rate that rises to its bound while many leases wait, and a bound on those that are awaited", async () => {
  const bench = await Bench.open();
  await bench.lead();
  for (let id = 1; id <= 4000; id++) bench.grant(BigInt(id), 2);
  await bench.run(2000);
  const perSecond: number[] = [];
  for (let second = 0; second < 2; second++) {
    const before = bench.revokedMs.size;
    await bench.run(1000);
    perSecond.push(bench.revokedMs.size - before);
  }
  assert.ok(
    perSecond[0] > 3 * BOUNDS.maxRevokesPerSecond &&
      perSecond[0] < BOUNDS.maxHurriedRevokesPerSecond,
    `${perSecond} a second`,
  );
  assert.ok(
    Math.abs(perSecond[1] - BOUNDS.maxHurriedRevokesPerSecond) <=
      BOUNDS.maxHurriedRevokesPerSecond / 10,
    `${perSecond} a second`,
  );
  bench.holds = true;
  await bench.run(10_000);
  assert.equal(bench.queue.length, BOUNDS.maxInflightRevokes);
  bench.holds = false;
  await bench.run(5000);
  assert.equal(bench.revokedMs.size, 4000);
});

test("once no caller waits, the rate of revocations is the usual one again", async () => {
  const bench = await Bench.open();
  await bench.lead();
  for (let id = 1; id <= 400; id++) bench.grant(BigInt(id), id <= 250 ? 2 : 20);
  await bench.run(10_000);
  assert.equal(bench.revokedMs.size, 250);
  // One look, whose allowance was saved up at the usual rate.
  await bench.run(10_050);
  assert.equal(bench.revokedMs.size - 250, BOUNDS.maxRevokesPerSecond / 2);
});

test("a revocation that failed is tried again", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 2);
  bench.holds = true;
  await bench.run(2200);
  assert.equal(bench.queue.length, 1);
  bench.queue.pop()!.reject(new Error("lost"));
  bench.holds = false;
  await bench.run(1000);
  assert.ok(bench.revokedMs.has(1n));
});

test("a revocation that is refused while members differ is tried again, and goes through when that is over", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 5);
  const alarm = (action: number) => {
    const request = AlarmRequest.encode({ action, memberID: 1n, alarm: AlarmType.CORRUPT });
    assert.equal(bench.apply(InternalRaftRequest.encode({ alarm: request })).error, undefined);
  };
  alarm(AlarmRequest_AlarmAction.ACTIVATE);
  await bench.run(9000);
  assert.deepEqual([bench.revokedMs.size, bench.counters.expired.value], [0, 0]);
  alarm(AlarmRequest_AlarmAction.DEACTIVATE);
  await bench.run(4000);
  assert.deepEqual([bench.revokedMs.size, bench.counters.expired.value], [1, 1]);
});

test("a renewal of an expired lease waits for its revocation, or for the end of the leadership", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 2);
  bench.grant(2n, 4);
  bench.holds = true;
  await bench.run(2200);
  assert.ok(bench.keeper.isExpiring(1n));
  const renewed = Promise.resolve(bench.keeper.renew(1n));
  bench.holds = false;
  await bench.run(200);
  assert.equal(await renewed, 0);
  bench.holds = true;
  await bench.run(2200);
  const demoted = assert.rejects(Promise.resolve(bench.keeper.renew(2n)), NotPrimaryError);
  await bench.run(20);
  bench.keeper.steppedDown();
  await demoted;
  assert.throws(() => bench.keeper.renew(2n), NotPrimaryError);
  assert.throws(() => bench.keeper.remainingMs(2n), NotPrimaryError);
});

test("a renewal of an expired lease waits for its revocation where the leadership was confirmed just now", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 2);
  bench.grant(2n, 100);
  bench.holds = true;
  await bench.run(2200);
  assert.equal(bench.queue.length, 1, "its revocation is on its way");
  assert.equal(await bench.keeper.renew(2n), 100);
  assert.equal(bench.keeper.renew(2n), 100, "at once: the leadership is confirmed");
  const renewed = bench.keeper.renew(1n);
  assert.ok(renewed instanceof Promise, "its time is over, whatever a renewal says");
  bench.holds = false;
  await bench.run(200);
  assert.equal(await renewed, 0);
});

test("a checkpoint that comes while another is taken back is taken back too", async () => {
  const bench = await Bench.open({ checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS });
  bench.grant(1n, 1000);
  bench.checkpoint(1n, 400);
  await bench.lead();
  bench.holds = true;
  const renewed = Promise.resolve(bench.keeper.renew(1n));
  await bench.run(20);
  assert.equal(bench.queue.length, 1);
  const [first] = bench.queue.splice(0);
  const applied = bench.apply(first!.data);
  // Behind it in the log, and applied before its caller goes on.
  bench.checkpoint(1n, 300);
  first!.resolve(applied);
  await bench.run(20);
  assert.equal(bench.queue.length, 1, "the second is in the log, so a successor would count it");
  bench.holds = false;
  await bench.run(20);
  assert.equal(await renewed, 1000);
  assert.equal(bench.store.lessor.get(1n)!.remainingSeconds, 0);
});

test("a renewal whose leadership ends while a checkpoint is taken back is none", async () => {
  const bench = await Bench.open({ checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS });
  bench.grant(1n, 1000);
  bench.checkpoint(1n, 400);
  await bench.lead();
  bench.holds = true;
  const demoted = assert.rejects(Promise.resolve(bench.keeper.renew(1n)), NotPrimaryError);
  await bench.run(20);
  assert.equal(bench.queue.length, 1);
  bench.keeper.steppedDown();
  await demoted;
  assert.equal(bench.counters.renewed.value, 0);
});

test("a renewal whose leadership ends while it is confirmed is none", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 10);
  bench.confirm = () => new Promise(() => {});
  await bench.run(200);
  const demoted = assert.rejects(Promise.resolve(bench.keeper.renew(1n)), NotPrimaryError);
  bench.keeper.steppedDown();
  await demoted;
  assert.equal(bench.counters.renewed.value, 0);
});

test("nothing is renewed while the leadership is not confirmed", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 10);
  const confirmation = Promise.withResolvers<void>();
  bench.confirm = () => confirmation.promise;
  await bench.run(200);
  const renewed = Promise.resolve(bench.keeper.renew(1n));
  await bench.run(3000);
  assert.equal(bench.counters.renewed.value, 0);
  confirmation.reject(new Error("no quorum"));
  await assert.rejects(renewed, { message: "no quorum" });
});

test("a confirmation counts from when it was asked for: one that took longer than a successor adds renews nothing", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 10);
  await bench.run(200);
  const asked: PromiseWithResolvers<void>[] = [];
  bench.confirm = () => {
    asked.push(Promise.withResolvers());
    return asked.at(-1)!.promise;
  };
  const slow = Promise.resolve(bench.keeper.renew(1n));
  await bench.run(1000);
  asked[0].resolve();
  await turn();
  assert.deepEqual([asked.length, bench.counters.renewed.value], [2, 0], "it asks again");
  // While the first was on its way another member may have been elected, and have counted this
  // lease's time to its end.
  asked[1].reject(new Error("no quorum"));
  await assert.rejects(slow, { message: "no quorum" });
  // One that took a little less serves who waited for it, and nobody who comes then.
  const timely = Promise.resolve(bench.keeper.renew(1n));
  await bench.run(990);
  asked[2].resolve();
  assert.equal(await timely, 10);
  const next = Promise.resolve(bench.keeper.renew(1n));
  assert.equal(asked.length, 4);
  asked[3].resolve();
  assert.equal(await next, 10);
  assert.equal(bench.keeper.renew(1n), 10, "confirmed just now");
});

test("a new leader counts from what the checkpoints left, and a renewal takes them back through the log", async () => {
  const bench = await Bench.open({ checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS });
  bench.grant(1n, 1000);
  bench.checkpoint(1n, 40);
  await bench.lead();
  assert.equal(bench.keeper.remainingMs(1n), 41_000);
  const renewed = Promise.resolve(bench.keeper.renew(1n));
  await bench.run(20);
  assert.equal(await renewed, 1000);
  assert.equal(bench.store.lessor.get(1n)!.remainingSeconds, 0);
  // Then nothing but the checkpoints of every five minutes goes into the log.
  await bench.run(299_900, 100);
  assert.equal(bench.store.lessor.get(1n)!.remainingSeconds, 0);
  await bench.run(300_200, 100);
  assert.equal(bench.store.lessor.get(1n)!.remainingSeconds, 400);
});

test("checkpoints: so many leases in an entry, so many entries awaited, and the rest follows", async () => {
  const bench = await Bench.open({ checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS });
  await bench.lead();
  const count = (BOUNDS.maxInflightCheckpoints + 2) * BOUNDS.maxCheckpointLeases + 10;
  for (let id = 1; id <= count; id++) bench.grant(BigInt(id), 1000);
  await bench.run(299_900, 100);
  assert.equal(bench.queue.length, 0);
  bench.holds = true;
  await bench.run(10_000, 100);
  const sizes = bench.queue.map(
    ({ data }) =>
      LeaseCheckpointRequest.decode(InternalRaftRequest.decode(data).leaseCheckpoint!).checkpoints
        .length,
  );
  assert.deepEqual(
    sizes,
    Array.from({ length: BOUNDS.maxInflightCheckpoints }, () => BOUNDS.maxCheckpointLeases),
  );
  // One is lost: the remaining times in it are noted with the next, in five minutes. The others
  // free places for those that wait.
  bench.queue.shift()!.reject(new Error("lost"));
  bench.holds = false;
  await bench.run(1000);
  const noted = () =>
    [...bench.store.lessor.all()].filter(({ remainingSeconds }) => remainingSeconds > 0).length;
  assert.equal(noted(), count - BOUNDS.maxCheckpointLeases);
  await bench.run(300_000, 100);
  assert.equal(noted(), count);
});

test("a pile-up that a new leader finds is spread to less than the rate of revocations", async () => {
  const bench = await Bench.open();
  for (let id = 1; id <= 300; id++) bench.grant(BigInt(id), 2);
  await bench.lead();
  await bench.run(12_000);
  assert.equal(bench.revokedMs.size, 300);
  const startMs = Math.min(...bench.revokedMs.values());
  assert.ok(startMs >= 3000);
  const perSecond = new Map<number, number>();
  for (const ms of bench.revokedMs.values()) {
    const second = Math.floor((ms - startMs) / 1000);
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
  }
  for (const count of perSecond.values())
    assert.ok(count <= BOUNDS.maxRevokesPerSecond, `${count} in a second`);
  assert.ok(perSecond.size >= 3);
});

test("a fleet that is gone: 500 leases a second end within a second of their time", async (t) => {
  const bench = await Bench.open();
  await bench.lead();
  // Renewed in turn within 4 s of 12, and then not any more.
  const count = 2000;
  const dueMs = new Map<bigint, number>();
  for (let step = 0; step < 400; step++) {
    for (let i = 0; i < count / 400; i++) {
      const id = BigInt(1 + (step * count) / 400 + i);
      bench.grant(id, 12);
      dueMs.set(id, bench.clock.monotonicMs() + 12_000);
    }
    await bench.run(10);
  }
  await bench.run(20_000);
  const lagsMs = [...bench.revokedMs].map(([id, ms]) => ms - dueMs.get(id)!).sort((a, b) => a - b);
  t.diagnostic(
    `lag: p50 ${lagsMs[count / 2]} ms, p99 ${lagsMs[Math.floor(count * 0.99)]} ms, most ${lagsMs.at(-1)} ms`,
  );
  assert.equal(lagsMs.length, count);
  assert.ok(lagsMs[0] >= 0 && lagsMs.at(-1)! < 1000);
});

test("a new leader that is not confirmed asks again, as long as it leads", async () => {
  const bench = await Bench.open();
  let asked = 0;
  bench.confirm = () => {
    asked++;
    return asked < 3 ? Promise.reject(new Error("no quorum")) : Promise.resolve();
  };
  bench.keeper.leads(1);
  await bench.run(90);
  assert.deepEqual([asked, bench.keeper.isPrimary], [1, false]);
  await bench.run(100);
  assert.deepEqual([asked, bench.keeper.isPrimary], [2, false]);
  await bench.run(100);
  assert.deepEqual([asked, bench.keeper.isPrimary], [3, true]);
  asked = 0;
  bench.keeper.leads(2);
  await turn();
  bench.keeper.steppedDown();
  await bench.run(1000);
  assert.equal(asked, 1);
});

test("a counted lease is renewed without a look-up only while nothing has to be waited for", async () => {
  const bench = await Bench.open({ checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS });
  bench.grant(1n, 400);
  bench.keeper.leads(1);
  assert.equal(bench.keeper.counted(1n), undefined, "nothing is counted yet");
  await turn();
  assert.equal(bench.keeper.counted(2n), undefined, "there is no such lease");
  assert.equal(bench.keeper.isExpiring(2n), false);
  const lease = bench.keeper.counted(1n)!;
  const isRenewed = () => {
    const before = bench.counters.renewed.value;
    const renewed = bench.keeper.renewAgain(lease);
    assert.equal(bench.counters.renewed.value, before + (renewed ? 1 : 0));
    if (renewed) assert.equal(bench.keeper.remainingMs(1n), 400_000);
    return renewed;
  };
  assert.equal(isRenewed(), true, "confirmed just now");
  bench.clock.advance(99);
  assert.equal(isRenewed(), true);
  bench.clock.advance(1);
  assert.equal(isRenewed(), false, "a confirmation serves 100 ms");
  assert.equal(await bench.keeper.renew(1n), 400);
  assert.equal(isRenewed(), true);
  bench.checkpoint(1n, 100);
  assert.equal(isRenewed(), false, "the note must be taken back first");
  const slow = bench.keeper.renew(1n);
  await bench.run(20);
  assert.equal(await slow, 400);
  assert.equal(isRenewed(), true);
  bench.holds = true;
  bench.clock.advance(400_000);
  assert.equal(await bench.keeper.remainingMs(1n), 0);
  assert.equal(bench.keeper.isExpiring(1n), true);
  assert.equal(isRenewed(), false, "its time is over");
  bench.keeper.steppedDown();
  await bench.lead();
  assert.equal(isRenewed(), false, "another leadership");
});

test("a confirmation is asked for before renewals need it, once, and one that fails harms none", async () => {
  const bench = await Bench.open();
  bench.grant(1n, 100);
  await bench.lead();
  assert.equal(await bench.keeper.renew(1n), 100);
  let asked = 0;
  const confirmations: PromiseWithResolvers<void>[] = [];
  bench.confirm = () => {
    asked++;
    confirmations.push(Promise.withResolvers<void>());
    return confirmations.at(-1)!.promise;
  };
  bench.clock.advance(49);
  assert.equal(bench.keeper.renew(1n), 100);
  assert.equal(asked, 0);
  bench.clock.advance(1);
  for (let i = 0; i < 3; i++) assert.equal(bench.keeper.renew(1n), 100);
  assert.equal(asked, 1);
  confirmations[0].reject(new Error("no quorum"));
  await turn();
  assert.equal(bench.keeper.renew(1n), 100);
  assert.equal(asked, 2);
  confirmations[1].resolve();
  await turn();
  // It counts from when it was asked for.
  bench.clock.advance(99);
  assert.equal(bench.keeper.renew(1n), 100);
  bench.clock.advance(1);
  assert.ok(bench.keeper.renew(1n) instanceof Promise);
});

test("who leads no more revokes and notes nothing, and counts from the start when it leads again", async () => {
  const bench = await Bench.open({ checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS });
  bench.grant(1n, 1000);
  bench.grant(2n, 5);
  await bench.lead();
  bench.keeper.steppedDown();
  await bench.run(400_000, 100);
  assert.deepEqual([bench.revokedMs.size, bench.store.lessor.get(1n)!.remainingSeconds], [0, 0]);
  await bench.lead();
  assert.equal(bench.keeper.remainingMs(2n), 6000, "its time, and an election timeout");
  await bench.run(7000, 100);
  assert.deepEqual([...bench.revokedMs.keys()], [2n]);
});

test("who leads no more in the next turn proposes no further revocations there", async () => {
  const bench = await Bench.open();
  await bench.lead();
  const { maxRevokesPerTurn } = BOUNDS;
  for (let id = 1; id <= 2 * maxRevokesPerTurn; id++) bench.grant(BigInt(id), 2);
  await bench.run(1900);
  bench.holds = true;
  const ends: (() => void)[] = [];
  bench.clock.endOfTurn = (task) => ends.push(task);
  bench.clock.advance(100);
  assert.equal(bench.queue.length, maxRevokesPerTurn);
  assert.ok(ends.length > 0, "the others follow in the next turn");
  bench.keeper.steppedDown();
  for (const task of ends) task();
  assert.equal(bench.queue.length, maxRevokesPerTurn);
});
