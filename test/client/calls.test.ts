/** What every call takes, and what its failure says, on real members. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type ClientError, type ErrorCode, opPut } from "@quorate/client";
import { onEachServer } from "./servers.ts";
import { Way } from "./way.ts";

onEachServer(import.meta.filename, (server) => {
  let way: Way | undefined;
  after(() => way?.close());

  const outcome = (call: Promise<unknown>): Promise<ClientError> =>
    call.then(
      () => assert.fail("it did not fail"),
      (error: ClientError) => error,
    );

  test("a write whose response is lost is made once, and says that it may have been made", async () => {
    way = await Way.to(server.cluster.endpoints[0]!);
    const client = server.connect({ endpoints: [way.endpoint] });
    const versionOf = async (key: string) => (await client.get(key)).kvs[0]?.version;
    await client.get("any");

    way.losesResponse = true;
    const { code, attempts, mayHaveHappened, method, endpoint } = await outcome(
      client.put("once", "1"),
    );
    assert.deepEqual(
      { code, attempts, mayHaveHappened, method, endpoint },
      {
        code: "Unavailable",
        attempts: 1,
        mayHaveHappened: true,
        method: "/etcdserverpb.KV/Put",
        endpoint: way.endpoint,
      },
    );
    assert.equal(await versionOf("once"), 1);

    way.losesResponse = true;
    await client.put("twice", "1", { repeat: true });
    assert.equal(await versionOf("twice"), 2);
    way.losesResponse = true;
    assert.equal((await client.get("twice")).count, 1);
  });

  test("a refused write says that it was not made, and its code is one of a switch", async () => {
    const client = server.connect();
    const refused = await outcome(client.txn({ success: [opPut("", "x")] }));
    assert.equal(refused.mayHaveHappened, false);
    const code: ErrorCode = refused.code;
    switch (code) {
      case "EmptyKey":
        break;
      default:
        assert.fail(code);
    }
  });

  test("an aborted signal ends a call, a stream and a watch", async () => {
    const client = server.connect();
    const stop = new AbortController();
    const reason = new Error("enough");
    const canceled = { name: "ClientError", code: "Canceled", cause: reason };
    const { header } = await client.put("abort", "0");
    // Ahead of the store, so a member holds the watch.
    const watching = (async () => {
      const revision = header.revision + 1_000_000;
      for await (const _ of client.watch("abort", { revision, signal: stop.signal }))
        assert.fail("nothing changes");
      return "ended";
    })();
    const snapshot = client.snapshot(undefined, { signal: stop.signal });
    await snapshot.next();
    const waiting = client.put("abort", "1", { signal: stop.signal });
    const failed = assert.rejects(waiting, canceled);
    stop.abort(reason);
    await failed;
    await assert.rejects(client.get("abort", { signal: stop.signal }), canceled);
    await assert.rejects(async () => {
      for await (const _ of snapshot);
    }, canceled);
    assert.equal(await watching, "ended");
    // The connection serves on.
    assert.equal((await client.get("abort")).count, 1);
  });

  test("timeoutMs of a call is its own, also where no member listens", async () => {
    // No process listens on port 1.
    const client = server.connect({ endpoints: ["http://127.0.0.1:1"], timeoutMs: 600_000 });
    const late = { code: "DeadlineExceeded", message: "context deadline exceeded" };
    await assert.rejects(client.get("a", { timeoutMs: 50 }), late);
    await assert.rejects(client.put("a", "b", { timeoutMs: 50 }), {
      ...late,
      mayHaveHappened: false,
    });
    await assert.rejects(client.leases.keepAliveOnce(1n, { timeoutMs: 50 }), late);
    await assert.rejects(client.watch("a", { timeoutMs: 50 })[Symbol.asyncIterator]().next(), late);
    const { ended } = client.leases.keepAlive(1n, () => {}, { timeoutMs: 50 });
    assert.equal((await ended).kind, "unreachable");
  });
});
