/** Turns of those who wait for long work. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { FairLimiter } from "../src/reads/fair-limiter.ts";

test("clients take turns, each in its own order", () => {
  const queue = new FairLimiter({
    maxRunning: 1,
    maxRunningPerClient: 1,
    maxWaiting: 10,
    maxWaitingPerClient: 5,
  });
  const started: string[] = [];
  const leaves = new Map<string, () => void>();
  for (const name of ["a1", "a2", "a3", "b1", "b2", "c1"])
    leaves.set(name, queue.join(name[0], () => started.push(name))!);
  for (let i = 0; i < 6; i++) leaves.get(started[i])!();
  assert.deepEqual(started, ["a1", "a2", "b1", "c1", "a3", "b2"]);
  assert.deepEqual([queue.running, queue.waiting], [0, 0]);
});

test("as clients come and go, no bound is passed, and no request waits while there is capacity", () => {
  const limits = { maxRunning: 5, maxRunningPerClient: 2, maxWaiting: 12, maxWaitingPerClient: 4 };
  const queue = new FairLimiter(limits);
  const random = new SeededRandom(5n);
  const open: { readonly client: string; readonly leave: () => void; isStarted: boolean }[] = [];
  for (let step = 0; step < 20_000; step++) {
    if (random.below(2) === 0) {
      const one = { client: `${random.below(5)}`, leave: () => {}, isStarted: false };
      const leave = queue.join(one.client, () => {
        one.isStarted = true;
      });
      if (leave !== undefined) open.push(Object.assign(one, { leave }));
    } else if (open.length > 0) open.splice(random.below(open.length), 1)[0].leave();
    const running = open.filter(({ isStarted }) => isStarted);
    const waiting = open.filter(({ isStarted }) => !isStarted);
    assert.deepEqual([queue.running, queue.waiting], [running.length, waiting.length]);
    assert.ok(running.length <= limits.maxRunning && waiting.length <= limits.maxWaiting);
    for (const client of ["0", "1", "2", "3", "4"]) {
      const own = running.filter((one) => one.client === client).length;
      assert.ok(own <= limits.maxRunningPerClient);
      if (waiting.some((one) => one.client === client))
        assert.ok(own === 2 || running.length === 5, "one waits beside a free place");
    }
  }
});
