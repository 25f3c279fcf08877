/** Results on their way from the loop to those who wait. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorOf } from "@quorate/proto";
import type { AppliedEntry } from "@quorate/store";
import { Deliveries, proposerOf } from "../src/loop/deliveries.ts";

function world() {
  const deliveries = new Deliveries();
  const got: string[] = [];
  const refused = (error: Error) => void got.push(error.message);
  const proposer = {
    applied: ({ requestId }: AppliedEntry) => void got.push(`applied ${requestId}`),
    refused,
  };
  const reader = (name: string) => ({ granted: () => void got.push(`granted ${name}`), refused });
  const result = (requestId: bigint): AppliedEntry => ({
    requestId,
    kind: undefined,
    response: undefined,
    error: undefined,
  });
  return { deliveries, got, proposer, reader, result };
}

test("results are handed over in order, behind the step that has them", async () => {
  const { deliveries, got, proposer, reader, result } = world();
  deliveries.applied(proposer, result(1n));
  deliveries.granted([reader("a"), reader("b")]);
  deliveries.refused(reader("c"), errorOf("Timeout"));
  deliveries.applied(proposer, result(2n));
  assert.deepEqual(got, [], "nothing of a caller runs within the step");
  await Promise.resolve();
  const refusal = errorOf("Timeout").message;
  assert.deepEqual(got, ["applied 1", "granted a", "granted b", refusal, "applied 2"]);
});

test("what a caller does with its result may have another one delivered", async () => {
  const { deliveries, got, proposer, result } = world();
  const first = { ...proposer, applied: () => deliveries.applied(proposer, result(2n)) };
  deliveries.applied(first, result(1n));
  await Promise.resolve();
  assert.deepEqual(got, []);
  await Promise.resolve();
  assert.deepEqual(got, ["applied 2"]);
});

test("a promise is settled at once: it has a turn of its own", async () => {
  const { deliveries, result } = world();
  const settled = Promise.withResolvers<AppliedEntry>();
  deliveries.applied(proposerOf(settled), result(7n));
  assert.equal((await settled.promise).requestId, 7n);
  const refused = Promise.withResolvers<AppliedEntry>();
  deliveries.refused(proposerOf(refused), errorOf("Timeout"));
  await assert.rejects(refused.promise, { message: errorOf("Timeout").message });
});
