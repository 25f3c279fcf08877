/**
 * The checks' statistics, their verdict with etcdctl's texts, and the rate of the load.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeIo } from "@quorate/cli/testing";
import { runLoad, statsOf } from "../src/check/load.ts";
import { perfModel, scaleModel } from "../src/check/models.ts";
import { judge } from "../src/check/perf.ts";

const none = new Map<string, number>();

test("figures of a load", () => {
  const stats = statsOf([0.1, 0.3, 0.2, 0.2], none, 2);
  assert.deepEqual(
    [stats.perSecond, stats.slowest, stats.deviation.toFixed(4)],
    [2, 0.3, "0.0707"],
  );
  assert.ok(Number.isNaN(statsOf([], none, 2).deviation));
});

describe("the verdict", () => {
  const good = { perSecond: 149.6, slowest: 0.25, deviation: 0.01, errors: none };

  test("passes", () => {
    assert.deepEqual(judge(good, 150), {
      text: "PASS: Throughput is 150 writes/s\nPASS: Slowest request took 0.250000s\nPASS: Stddev is 0.010000s\nPASS\n",
      passes: true,
    });
  });

  test("fails for each reason, and reports all of them", () => {
    const { text, passes } = judge(
      {
        perSecond: 135,
        slowest: 0.6,
        deviation: 0.2,
        errors: new Map([["etcdserver: too many requests", 3]]),
      },
      150,
    );
    assert.equal(
      text,
      "FAIL: too many errors\nFAIL: ERROR(etcdserver: too many requests) -> 3\nFAIL: Throughput too low: 136 writes/s\n" +
        "Slowest request took too long: 0.600000s\nStddev too high: 0.200000s\nFAIL\n",
    );
    assert.equal(passes, false);
    for (const bad of [
      { perSecond: 135 },
      { slowest: 0.51 },
      { deviation: 0.11 },
      { errors: new Map([["x", 1]]) },
    ]) {
      assert.equal(judge({ ...good, ...bad }, 150).passes, false);
    }
  });
});

test("loads are known by short and long names; others end with code 4", () => {
  assert.deepEqual(perfModel("xLarge"), perfModel("xl"));
  assert.deepEqual(scaleModel("m"), { keys: 100_000, clients: 200 });
  for (const name of ["xxl", "toString"])
    assert.throws(() => perfModel(name), { code: 4, message: `unknown load option ${name}` });
});

describe("the load", () => {
  /** Time goes on only by sleeping. */
  class StandingClock extends FakeIo {
    timeNs = 0n;
    override nowNs(): bigint {
      return this.timeNs;
    }
    override async sleep(delayMs: number): Promise<void> {
      this.timeNs += BigInt(delayMs) * 1_000_000n;
    }
  }

  test("keeps to the rate and the time", async () => {
    const io = new StandingClock();
    let calls = 0;
    let last = 0;
    const plan = { concurrency: 10, perSecond: 200, seconds: 3, calls: undefined };
    const stats = await runLoad(
      io,
      plan,
      new AbortController().signal,
      async () => void calls++,
      (_calls, seconds) => {
        last = seconds;
      },
    );
    assert.ok(calls >= 595 && calls <= 600, `${calls} calls in 3 s at 200 a second`);
    assert.ok(Math.abs(stats.perSecond - 200) < 3 && last === 3);
  });

  test("keeps to its limit of concurrent calls, and makes no burst after a pause", async () => {
    const io = new StandingClock();
    let underWay = 0;
    let most = 0;
    let calls = 0;
    const waiting: (() => void)[] = [];
    const plan = { concurrency: 5, perSecond: 1000, seconds: 1, calls: undefined };
    const load = runLoad(
      io,
      plan,
      new AbortController().signal,
      () => {
        calls++;
        most = Math.max(most, ++underWay);
        return new Promise<void>((resolve) => waiting.push(resolve)).then(() => void underWay--);
      },
      () => {
        // Responses take half a second.
        if (io.timeNs > 500_000_000n) for (const resolve of waiting.splice(0)) resolve();
      },
    );
    await new Promise((resolve) => setImmediate(resolve));
    for (const resolve of waiting.splice(0)) resolve();
    await load;
    assert.equal(most, 5);
    assert.ok(calls < 1000);
  });

  test("counts errors by text, and ends after a number of calls or when stopped", async () => {
    const io = new StandingClock();
    const plan = { concurrency: 3, perSecond: undefined, seconds: undefined, calls: 10 };
    const { errors } = await runLoad(
      io,
      plan,
      new AbortController().signal,
      () => Promise.reject(new Error("no")),
      () => {},
    );
    assert.deepEqual([...errors], [["no", 10]]);
    const stop = new AbortController();
    let calls = 0;
    await runLoad(
      io,
      { ...plan, calls: 1000 },
      stop.signal,
      async () => void (++calls === 20 && stop.abort()),
      () => {},
    );
    assert.ok(calls >= 20 && calls < 25);
  });
});
