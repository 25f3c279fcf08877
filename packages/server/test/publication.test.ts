/**
 * A member that publishes itself: what is refused at once is tried again later, not for ever in one
 * turn.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { StoreRef } from "@quorate/member/testing";
import { PUBLISH_RETRY_MS, Publication, type PublicationParts } from "@quorate/member/testing";
import { errorOf } from "@quorate/proto";
import { loadConfig } from "../src/config/load.ts";

test("a publication that is refused at once waits before it tries again, and ends with the member", async () => {
  const invocation = await loadConfig([], {}, () => "");
  assert.ok(invocation.kind === "run");
  const clock = new ManualClock();
  let attempts = 0;
  const lifetime = { hasEnded: false };
  const publication = new Publication({
    clock,
    memberId: 1n,
    clusterId: 2n,
    config: invocation.config,
    metrics: {} as PublicationParts["metrics"],
    logger: silentLogger,
    get store(): StoreRef {
      return assert.fail("it has not come as far");
    },
    lifetime,
    proposals: {
      propose: async () => {
        assert.ok(++attempts < 100, "it tries for ever");
        throw errorOf("TooManyRequests");
      },
    },
  });
  const published = publication.publish();
  for (let i = 1; i <= 3; i++) {
    await turn();
    assert.equal(attempts, i);
    clock.advance(PUBLISH_RETRY_MS);
  }
  await turn();
  lifetime.hasEnded = true;
  clock.advance(PUBLISH_RETRY_MS);
  await published;
  assert.equal(attempts, 4);
});
