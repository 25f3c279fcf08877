/**
 * The JSON gateway sends what etcd 3.7.3's sent for the same requests, which is stored; beside an
 * etcd 3.7 also for requests of a new seed. By hand: ./dev compare gateway.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { quorate } from "../support/executables.ts";
import { differencesOf, responsesOf, startMember } from "./gateway/compare.ts";
import { KEPT_COUNT, KEPT_SEED, keptResponses } from "./gateway/kept.ts";
import { requestsOf } from "./gateway/requests.ts";

test("the gateway's responses to requests of every path are etcd 3.7's", async () => {
  const requests = requestsOf(KEPT_SEED, KEPT_COUNT);
  const cluster = await startMember(quorate);
  try {
    const kept = keptResponses();
    const ours = await responsesOf(cluster.members[0].clientAddress, requests, kept);
    assert.deepEqual(differencesOf(requests, kept, ours).seen, []);
  } finally {
    await cluster.destroy();
  }
});
