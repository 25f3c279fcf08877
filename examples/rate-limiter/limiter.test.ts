/** Calls are counted over all programs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { RateLimiter } from "./limiter.ts";

test("programs share a limit, which fills again with time", async () => {
  await using cluster = await testCluster();
  let nowMs = 1000;
  const limiters = [1, 2].map(
    () => new RateLimiter(cluster.client(), { burst: 3, perSecond: 2 }, () => nowMs),
  );
  const taken = async (caller: string): Promise<number> => {
    const answers = await Promise.all([0, 1, 0, 1, 0].map((at) => limiters[at]!.take(caller)));
    return answers.filter((isTaken) => isTaken).length;
  };
  assert.equal(await taken("ann"), 3);
  assert.equal(await taken("bob"), 3);
  nowMs += 1000;
  assert.equal(await taken("ann"), 2);
  nowMs += 60_000;
  assert.equal(await taken("ann"), 3);
});
