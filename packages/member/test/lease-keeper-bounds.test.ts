/** The keeper of leases at its bounds: the moment, the lease, the step that is just in or out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { InternalRaftRequest, LeaseCheckpointRequest } from "@quorate/proto";
import {
  type KeeperDeps,
  LEASE_CHECKPOINT_INTERVAL_MS,
  LeaseKeeper,
  NotPrimaryError,
} from "../src/lease/keeper.ts";
import { Bench, BOUNDS } from "./support/lease-bench.ts";

const INTERVAL = { checkpointIntervalMs: LEASE_CHECKPOINT_INTERVAL_MS };

/** What a proposal that waits is: a kind of request, and of checkpoints the leases in it. */
function waiting(bench: Bench): (string | bigint[])[] {
  return bench.queue.map(({ data }) => {
    const request = InternalRaftRequest.decode(data);
    if (request.leaseRevoke !== undefined) return "leaseRevoke";
    if (request.leaseCheckpoint === undefined) return "txn";
    return LeaseCheckpointRequest.decode(request.leaseCheckpoint)
      .checkpoints.map(({ ID }) => ID)
      .sort();
  });
}

test("a confirmation may not serve as long as a successor adds", () => {
  for (const [confirmedForMs, isTaken] of [
    [999, true],
    [1000, false],
  ] as const) {
    const make = () =>
      new LeaseKeeper(
        {
          minTtlSeconds: 2,
          extendMs: 1000,
          confirmedForMs,
          checkpointIntervalMs: undefined,
          bounds: BOUNDS,
        },
        { clock: new ManualClock(), logger: silentLogger } as unknown as KeeperDeps,
      );
    if (isTaken) make();
    else assert.throws(make, RangeError);
  }
});

test("a second leadership ends the first: who waited there is told", async () => {
  const bench = await Bench.open();
  await bench.lead();
  bench.grant(1n, 2);
  bench.holds = true;
  await bench.run(2200);
  const renewed = assert.rejects(Promise.resolve(bench.keeper.renew(1n)), NotPrimaryError);
  await bench.run(20);
  bench.keeper.leads(2);
  await renewed;
});

test("a pile-up is spread from the share of a second's revocations on, each lease a little later", async () => {
  const share = (3 / 4) * BOUNDS.maxRevokesPerSecond;
  const later = (expires: number) => 3000 + (1000 * expires) / share;
  const close = (actual: number | undefined, expected: number, id: number) =>
    assert.ok(Math.abs(actual! - expected) < 0.001, `lease ${id}: ${actual}, expected ${expected}`);
  const few = await Bench.open();
  for (let id = 1; id < BOUNDS.maxRevokesPerSecond; id++) few.grant(BigInt(id), 2);
  await few.lead();
  for (let id = 1; id < BOUNDS.maxRevokesPerSecond; id++)
    assert.equal(few.keeper.expiryMs(BigInt(id)), 3000);
  const enough = await Bench.open();
  for (let id = 1; id <= BOUNDS.maxRevokesPerSecond; id++) enough.grant(BigInt(id), 2);
  await enough.lead();
  for (let id = 1; id <= BOUNDS.maxRevokesPerSecond; id++)
    close(enough.keeper.expiryMs(BigInt(id)), id <= share ? 3000 : later(id), id);

  // A lease at the end of the second counts to it.
  const two = await Bench.open();
  for (let id = 1; id <= 100; id++) two.grant(BigInt(id), id <= 70 ? 2 : 3);
  await two.lead();
  for (let id = 71; id <= 100; id++)
    close(two.keeper.expiryMs(BigInt(id)), id === share + 1 ? later(id) : 4000, id);

  // Those of half a minute come first in the map, and last in time.
  const many = await Bench.open();
  for (let id = 201; id <= 300; id++) many.grant(BigInt(id), 30);
  for (let id = 1; id <= 80; id++) many.grant(BigInt(id), 2);
  for (let id = 81; id <= 120; id++) many.grant(BigInt(id), 3);
  await many.lead();
  const expiry = (id: number) => many.keeper.expiryMs(BigInt(id));
  for (let id = 1; id <= 80; id++) close(expiry(id), id <= share ? 3000 : later(id), id);
  // One more within the second of the first; with the next one a second begins, as in etcd.
  close(expiry(81), later(81), 81);
  for (let id = 82; id <= 120; id++) assert.equal(expiry(id), 4000, `lease ${id}`);
  for (let id = 201; id <= 300; id++) {
    const expires = id - 200;
    close(expiry(id), expires <= share ? 31_000 : 28_000 + later(expires), id);
  }
});

test("a lease that is renewed soon after a new leader's start ends by that renewal, not by what the leader added", async () => {
  const bench = await Bench.open();
  bench.grant(1n, 5);
  await bench.lead();
  assert.equal(bench.keeper.remainingMs(1n), 6000);
  assert.equal(await bench.keeper.renew(1n), 5);
  await bench.run(4990);
  assert.equal(bench.revokedMs.size, 0);
  await bench.run(120);
  assert.ok(bench.revokedMs.has(1n));
});

test("leases that are due at a new leader's first look end", async () => {
  const bench = await Bench.open();
  for (let id = 1n; id <= 3n; id++) bench.grant(id, 2);
  await bench.lead();
  // The machine stood still meanwhile.
  const monotonicMs = bench.clock.monotonicMs.bind(bench.clock);
  bench.clock.monotonicMs = () => monotonicMs() + 60_000;
  await bench.run(2000);
  assert.deepEqual([...bench.revokedMs.keys()].sort(), [1n, 2n, 3n]);
});

test("a lease that was revoked is neither revoked again nor noted", async () => {
  const bench = await Bench.open(INTERVAL);
  await bench.lead();
  bench.grant(1n, 2);
  bench.grant(2n, 1000);
  bench.revoke(1n);
  bench.revoke(2n);
  bench.holds = true;
  await bench.run(301_000, 100);
  assert.deepEqual(waiting(bench), []);
});

test("a counted lease is not renewed once it is revoked, nor in another leadership", async () => {
  const bench = await Bench.open();
  bench.grant(1n, 10);
  bench.grant(2n, 10);
  await bench.lead();
  const [first, second] = [bench.keeper.counted(1n)!, bench.keeper.counted(2n)!];
  assert.equal(bench.keeper.renewAgain(first), true);
  bench.revoke(1n);
  assert.equal(bench.keeper.renewAgain(first), false);
  bench.keeper.steppedDown();
  bench.clock.endOneTurn();
  await bench.lead();
  assert.equal(bench.keeper.renewAgain(second), false);
});

test("a lease has expired at the millisecond of its end", async () => {
  const bench = await Bench.open();
  bench.grant(1n, 2);
  bench.grant(2n, 100);
  await bench.lead();
  await bench.keeper.renew(1n);
  const lease = bench.keeper.counted(1n)!;
  bench.holds = true;
  await bench.run(2000, 100);
  assert.equal(bench.keeper.remainingMs(1n), 0);
  await bench.keeper.renew(2n);
  assert.equal(bench.keeper.renewAgain(lease), false);
  let answered: number | undefined;
  void Promise.resolve(bench.keeper.renew(1n)).then((seconds) => (answered = seconds));
  await turn();
  assert.equal(answered, undefined, "it waits for the revocation");
  bench.holds = false;
  await bench.run(100);
  assert.equal(answered, 0);
});

test("a lease that is not known may be granted while the log is read up to now, and not later", async () => {
  const bench = await Bench.open();
  bench.grant(1n, 10);
  await bench.lead();
  let asked = 0;
  bench.confirm = async () => {
    asked++;
    if (asked === 1) bench.grant(2n, 20);
  };
  assert.equal(bench.keeper.renew(1n), 10, "confirmed");
  assert.equal(await bench.keeper.renew(2n), 20);
  assert.equal(asked, 1);
  assert.equal(await bench.keeper.renew(3n), 0);
  assert.equal(asked, 2);
});

test("the next confirmation is asked for in the second half of one's time, not before", async () => {
  const bench = await Bench.open();
  bench.clock.advance(1000);
  bench.grant(1n, 10);
  await bench.lead();
  let asked = 0;
  bench.confirm = async () => void asked++;
  const lease = bench.keeper.counted(1n)!;
  for (const [ms, times] of [
    [49, 0],
    [1, 1],
  ] as const) {
    bench.clock.advance(ms);
    assert.equal(bench.keeper.renewAgain(lease), true);
    assert.equal(asked, times);
  }
});

test("a look takes what was saved up, and doubles its rate from the first one that leaves some", async () => {
  const bench = await Bench.open();
  await bench.lead();
  for (let id = 1; id <= 400; id++) bench.grant(BigInt(id), 2);
  const taken: number[] = [];
  bench.holds = true;
  await bench.run(1900, 100);
  for (let look = 0; look < 6; look++) {
    const before = bench.queue.length;
    await bench.run(100, 100);
    taken.push(bench.queue.length - before);
  }
  assert.deepEqual(taken, [50, 20, 40, 80, 100, 100]);
});

test("the rate does not double while as many results are awaited as may be", async () => {
  const bench = await Bench.open({ bounds: { maxInflightRevokes: 60 } });
  await bench.lead();
  for (let id = 1; id <= 400; id++) bench.grant(BigInt(id), 2);
  bench.holds = true;
  await bench.run(2500, 100);
  assert.equal(bench.queue.length, 60);
  bench.holds = false;
  // What was saved up at 200 a second, then that rate, and then it doubles.
  const revoked: number[] = [];
  for (let look = 0; look < 5; look++) {
    const before = bench.revokedMs.size;
    await bench.run(100, 100);
    revoked.push(bench.revokedMs.size - before);
  }
  assert.deepEqual(revoked, [60, 60, 60, 20, 40]);
});

test("a new leadership begins at the usual rate", async () => {
  const bench = await Bench.open();
  await bench.lead();
  for (let id = 1; id <= 1000; id++) bench.grant(BigInt(id), 2);
  await bench.run(2700, 100);
  bench.keeper.steppedDown();
  for (let id = 1001; id <= 2000; id++) bench.grant(BigInt(id), 2);
  await bench.lead();
  const { size } = bench.revokedMs;
  while (bench.revokedMs.size === size) await bench.run(100, 100);
  assert.ok(bench.revokedMs.size - size <= BOUNDS.maxRevokesPerSecond / 2);
});

test("as many leases as a turn may look at take no further turn", async () => {
  for (const [count, hasMore] of [
    [BOUNDS.maxLooksPerTurn, false],
    [BOUNDS.maxLooksPerTurn + 1, true],
  ] as const) {
    const bench = await Bench.open();
    await bench.lead();
    for (let id = 1; id <= count; id++) bench.grant(BigInt(id), 2);
    await bench.run(1000, 100);
    for (let id = 1; id <= count; id++) await bench.keeper.renew(BigInt(id));
    await bench.run(900, 100);
    let turns = 0;
    const { endOfTurn } = bench.clock;
    bench.clock.endOfTurn = (task) => {
      turns++;
      endOfTurn.call(bench.clock, task);
    };
    bench.clock.advance(100);
    assert.equal(turns > 0, hasMore, `${count} leases, ${turns} turns`);
  }
});

/** A keeper for which lease 1 has a transaction to be applied before it is revoked. */
async function withTransaction(): Promise<Bench> {
  const bench = await Bench.open({
    beforeRevoke: (_store, id) => (id === 1n ? new Uint8Array() : undefined),
    bounds: { maxInflightRevokes: 1 },
  });
  await bench.lead();
  bench.grant(1n, 2);
  bench.holds = true;
  await bench.run(2000, 100);
  assert.deepEqual(waiting(bench), ["txn"]);
  return bench;
}

test("what ends with a lease is applied before the lease is revoked", async () => {
  const bench = await withTransaction();
  const [txn] = bench.queue.splice(0);
  txn!.resolve({} as never);
  await turn();
  assert.deepEqual(waiting(bench), ["leaseRevoke"]);
  bench.holds = false;
  await bench.run(100);
  assert.ok(bench.revokedMs.has(1n));
  assert.equal(bench.counters.expired.value, 1);
});

test("where that is refused or lost, it is tried again after a while; others have their turn meanwhile", async () => {
  for (const [isRefused, retryMs] of [
    [true, 3000],
    [false, 500],
  ] as const) {
    const bench = await withTransaction();
    const [txn] = bench.queue.splice(0);
    if (isRefused) txn!.resolve({ error: new Error("refused") } as never);
    else txn!.reject(new Error("lost"));
    await turn();
    await bench.run(retryMs - 100, 100);
    assert.deepEqual(waiting(bench), []);
    await bench.run(100, 100);
    assert.deepEqual(waiting(bench), ["txn"]);
    bench.queue.splice(0)[0]!.reject(new Error("lost"));
    bench.grant(2n, 2);
    bench.holds = false;
    // Lease 1 waits for its next try, and only one revocation may be awaited.
    await bench.run(2100, 100);
    assert.ok(bench.revokedMs.has(2n));
  }
});

test("a revocation that was lost is tried again after half a second, unless another has revoked the lease", async () => {
  const bench = await Bench.open({ bounds: { maxInflightRevokes: 1 } });
  await bench.lead();
  bench.grant(1n, 2);
  bench.holds = true;
  await bench.run(2000, 100);
  bench.queue.splice(0)[0]!.reject(new Error("lost"));
  await turn();
  await bench.run(400, 100);
  assert.deepEqual(waiting(bench), []);
  await bench.run(100, 100);
  assert.deepEqual(waiting(bench), ["leaseRevoke"]);
  bench.revoke(1n);
  bench.queue.splice(0)[0]!.reject(new Error("lost"));
  await bench.run(1000, 100);
  assert.deepEqual(waiting(bench), []);
});

test("a lease of no more than the interval is not noted, however late it is renewed", async () => {
  const bench = await Bench.open(INTERVAL);
  await bench.lead();
  await bench.run(10_000, 1000);
  bench.grant(1n, 300);
  bench.holds = true;
  await bench.run(200_000, 1000);
  await bench.keeper.renew(1n);
  await bench.run(101_000, 1000);
  assert.deepEqual(waiting(bench), []);
});

test("a lease is noted once in each interval, and can be renewed by itself only when that is taken back", async () => {
  const bench = await Bench.open(INTERVAL);
  await bench.lead();
  bench.grant(1n, 500);
  bench.holds = true;
  await bench.run(300_000, 1000);
  assert.deepEqual(waiting(bench), [[1n]]);
  // It is not applied yet, and may be in the log all the same.
  bench.grant(2n, 500);
  await bench.keeper.renew(2n);
  assert.equal(bench.keeper.renewAgain(bench.keeper.counted(1n)!), false);
  bench.holds = false;
  await bench.run(10_000, 1000);
  const renewed = bench.keeper.renew(1n);
  await bench.run(1000, 100);
  assert.equal(await renewed, 500);
  assert.equal(bench.store.lessor.get(1n)!.remainingSeconds, 0);
  await bench.run(300_000, 1000);
  assert.equal(bench.store.lessor.get(1n)!.remainingSeconds, 200);
});

test("what has its whole time or none of it left is not noted; a look looks at so many", async () => {
  const { maxLooksPerTurn } = BOUNDS;
  const bench = await Bench.open({
    ...INTERVAL,
    bounds: { maxCheckpointLeases: 2 * maxLooksPerTurn },
  });
  await bench.lead();
  bench.clock.advance(20);
  for (let id = 1; id <= maxLooksPerTurn; id++) bench.grant(BigInt(id), 1000);
  bench.clock.advance(10);
  for (let id = 1; id <= 5; id++) bench.grant(BigInt(1000 + id), 1000);
  await bench.run(299_470, 10);
  for (let id = 1; id <= maxLooksPerTurn; id++) await bench.keeper.renew(BigInt(id));
  bench.holds = true;
  await bench.run(600, 100);
  assert.deepEqual(waiting(bench), [], "the look was at those that have just been renewed");
  await bench.run(100, 100);
  assert.deepEqual(waiting(bench), [[1001n, 1002n, 1003n, 1004n, 1005n]]);
});

test("a lease that has ended while its note waited is not noted", async () => {
  const bench = await Bench.open({ ...INTERVAL, bounds: { maxInflightCheckpoints: 1 } });
  await bench.lead();
  bench.grant(1n, 1000);
  await bench.run(100, 100);
  bench.grant(2n, 301);
  bench.holds = true;
  await bench.run(300_900, 100);
  assert.deepEqual(waiting(bench), [[1n]]);
  // At its last millisecond: the next look is at 301.1 s.
  bench.queue.splice(0)[0]!.reject(new Error("lost"));
  await turn();
  await bench.run(100, 100);
  assert.deepEqual(waiting(bench), ["leaseRevoke"]);
});
