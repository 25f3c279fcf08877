/** A flood of changes of members that are refused is no flood of log lines. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { errorOf } from "@quorate/proto";
import { Reconfiguration, type ReconfigurationParts } from "../src/membership/reconfiguration.ts";

test("refused additions: every caller has the error, the log a few lines and their number", async () => {
  const lines: (number | undefined)[] = [];
  let nowMs = 10_000;
  const member = (id: bigint) => ({
    id,
    name: "m",
    peerUrls: [],
    clientUrls: [],
    isLearner: false,
  });
  const members = [member(1n), member(2n), member(3n)];
  const parts = {
    memberId: 1n,
    strict: true,
    clock: { monotonicMs: () => nowMs, wallMs: () => nowMs },
    logger: {
      ...silentLogger,
      warn: (_text: string, fields: Record<string, unknown>) =>
        lines.push(fields["omitted-lines"] as number | undefined),
    },
    store: { current: { membership: { isRemoved: () => false, members: () => members } } },
    transport: { peers: () => [] },
  } as unknown as ReconfigurationParts;
  const reconfiguration = new Reconfiguration(parts);
  const refused = { message: errorOf("Unhealthy").message };
  for (let i = 0; i < 1000; i++)
    await assert.rejects(reconfiguration.add([`http://127.0.0.1:${i}`], false), refused);
  assert.deepEqual(lines, new Array(20).fill(undefined));
  nowMs += 1000;
  await assert.rejects(reconfiguration.add(["http://127.0.0.1:1"], false), refused);
  assert.deepEqual(lines.slice(20), [980]);
});
