/** Programs under the simulator. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lockProgram } from "../../../examples/testing/simulated-locks.ts";
import { findSeed, SimulationError, simulate } from "../index.ts";

test("a lock without fencing lets two in under some seed, and does so again", async () => {
  const found = await findSeed(lockProgram(false), { first: 33, count: 200 });
  assert.ok(found instanceof SimulationError);
  assert.match(found.message, /^two holders: c\d and c\d\nseed \d+, hash [0-9a-f]{16}: simulate\(/);
  assert.match(found.message, /is paused for \d+ ms/);
  await assert.rejects(simulate(found.seed, lockProgram(false)), { hash: found.hash });
});

test("the same lock with fencing passes seeds", async () => {
  assert.equal(await findSeed(lockProgram(true), { first: 10, count: 6 }), undefined);
});

test("clients, clocks and faults of a program's own", async () => {
  const { simulatedMs } = await simulate(
    1,
    async ({ clients: [first, second], nemesis, clock, random }) => {
      const { header } = await first.put("k", "1");
      const changes = second.watch("k", { revision: header.revision }).changes();
      assert.equal((await changes.next()).value?.kind, "put");
      const before = clock.now();
      nemesis.pauseClient(second, 5000);
      await second.clock.sleep(10);
      assert.ok(clock.now() - before >= 5000);
      const leader = nemesis.leader() ?? 0;
      nemesis.killMember(leader);
      await clock.sleep(20_000);
      assert.notEqual(nemesis.leader(), undefined);
      nemesis.isolateMember(1, 1000);
      nemesis.pauseMember(2, 1000);
      await clock.sleep(20_000);
      await first.delete("k");
      assert.equal((await changes.next()).value?.kind, "delete");
      await assert.rejects(first.get("k", { revision: 999 }), { code: "FutureRev" });
      assert.ok(random() < 1);
    },
    { clients: 2, faults: false },
  );
  assert.ok(simulatedMs >= 45_000);
});

test("what fails is named with its seed; what waits for real time is told", async () => {
  const wrong = async () => {
    throw new Error("as expected");
  };
  await assert.rejects(simulate(3, wrong), {
    name: "SimulationError",
    seed: 3,
    message: /^as expected\nseed 3, /,
  });
  const waits = () => new Promise<void>((resolve) => setTimeout(resolve, 3_600_000).unref());
  await assert.rejects(
    simulate(3, waits, { limitMs: 1000, faults: false }),
    /not over within 1000/,
  );
  await assert.rejects(simulate(1.5, wrong), /whole number|integer/);
});
