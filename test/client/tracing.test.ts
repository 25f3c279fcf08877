/** What observers of the diagnostics channels see, on real members. */
import assert from "node:assert/strict";
import { tracingChannel } from "node:diagnostics_channel";
import { test } from "node:test";
import type { CallTrace } from "@quorate/client";
import { onEachServer } from "./servers.ts";

type Seen = CallTrace & { readonly error?: { readonly code: string } };

/** What is published on a channel while `run` runs, as "start", "end of ..." or "error". */
async function observed(channel: string, run: () => Promise<void>): Promise<[string, Seen][]> {
  const seen: [string, Seen][] = [];
  const on = (name: string) => (context: unknown) =>
    void seen.push([name, { ...(context as Seen) }]);
  const subscribers = {
    start: on("start"),
    end: () => {},
    asyncStart: () => {},
    asyncEnd: on("end"),
    error: on("error"),
  };
  const tracing = tracingChannel(channel);
  tracing.subscribe(subscribers);
  try {
    await run();
  } finally {
    tracing.unsubscribe(subscribers);
  }
  return seen;
}

onEachServer(import.meta.filename, (server) => {
  test("each call is seen from its start to its end, with method, endpoint and attempts", async () => {
    const [endpoint] = server.cluster.endpoints;
    // No process listens on port 1.
    const client = server.connect({ endpoints: ["http://127.0.0.1:1", endpoint!] });
    const seen = await observed("quorate:call", async () => {
      await client.get("a");
      await assert.rejects(client.put("", ""), { code: "EmptyKey" });
    });
    const methods = seen.map(([name, { method }]) => `${name} ${method}`);
    assert.deepEqual(methods, [
      "start /etcdserverpb.KV/Range",
      "end /etcdserverpb.KV/Range",
      "start /etcdserverpb.KV/Put",
      "error /etcdserverpb.KV/Put",
      "end /etcdserverpb.KV/Put",
    ]);
    assert.deepEqual([seen[0]![1].endpoint, seen[0]![1].attempts], [undefined, 0]);
    const [, range] = seen[1]!;
    assert.equal(range.endpoint, endpoint);
    // The client begins with either of its endpoints.
    assert.ok(range.attempts === 1 || range.attempts === 2);
    assert.equal(seen[3]![1].error?.code, "EmptyKey");
  });

  test("each opening of a stream of watches is seen", async () => {
    const client = server.connect();
    const { header } = await client.put("watched", "1");
    const seen = await observed("quorate:watch", async () => {
      for await (const _ of client.watch("watched", { revision: header.revision })) break;
    });
    assert.deepEqual(
      seen.map(([name, { method, endpoint, attempts }]) => [name, method, endpoint, attempts]),
      [
        ["start", "/etcdserverpb.Watch/Watch", undefined, 0],
        ["end", "/etcdserverpb.Watch/Watch", server.cluster.endpoints[0], 1],
      ],
    );
  });
});
