/** What ends with a block, and the loss of leases, locks and leaderships, on real members. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import {
  type Client,
  campaign,
  compareCreateRevision,
  electedLeader,
  LeaseEndedError,
  type Lock,
  lockNamed,
  NotLeaderError,
  observeElection,
  opPut,
  toUtf8,
} from "@quorate/client";
import { onEachServer } from "./servers.ts";

onEachServer(import.meta.filename, (server) => {
  const exists = async (client: Client, lease: bigint) =>
    (await client.leases.timeToLive(lease)).TTL > 0;

  test("a block's end closes the client, and ends its lock, session, lease and watch", async () => {
    const other = server.connect();
    let left: { client: Client; lock: Lock; lease: bigint; kept: bigint } | undefined;
    let watched = "";
    {
      await using client = server.connect();
      await using session = await client.session({ ttlSeconds: 60 });
      await using lock = await lockNamed(client, session, "block");
      const kept = (await client.leases.grant(60)).ID;
      await using keeper = client.leases.keepAlive(kept);
      await using watch = client.watch("block/", { prefix: true, revision: lock.token });
      for await (const { kv } of watch.changes()) {
        watched = toUtf8(kv.key);
        break;
      }
      assert.equal((await other.get("block/", { prefix: true })).count, 1);
      left = { client, lock, lease: session.lease, kept };
      assert.equal(keeper.signal.aborted, false);
    }
    assert.equal(watched, left.lock.entry.key);
    assert.equal((await other.get("block/", { prefix: true })).count, 0);
    assert.equal(await exists(other, left.lease), false, "the session revoked its lease");
    assert.equal(await exists(other, left.kept), true, "a lease that is kept alive is only left");
    assert.ok(left.lock.signal.aborted);
    await assert.rejects(left.client.get("a"), { code: "Canceled" });
  });

  test("the loss of a lease aborts the signals of what depends on it, and a fence holds", async () => {
    const client = server.connect();
    const session = await client.session({ ttlSeconds: 2 });
    const lock = await lockNamed(client, session, "fence");
    assert.equal(lock.signal.aborted, false);
    // As an operator, or an expiry that this program did not see.
    await client.leases.revoke(session.lease);
    const next = await client.session();
    const later = await lockNamed(client, next, "fence");
    assert.ok(later.token > lock.token);
    const write = async ({ entry, token }: Lock, value: string) => {
      const compare = [compareCreateRevision(entry.key, "=", token)];
      return (await client.txn({ compare, success: [opPut("fenced", value)] })).succeeded;
    };
    assert.deepEqual([await write(lock, "old"), await write(later, "new")], [false, true]);
    if (!lock.signal.aborted) await once(lock.signal, "abort");
    assert.ok(lock.signal.reason instanceof LeaseEndedError);
    assert.deepEqual(lock.signal.reason.end, { kind: "expired" });
    assert.equal(lock.signal, session.signal);
    // Its lease is gone already.
    await session.close();
    await next.close();
  });

  test("who waits for a lock gives up in time, and when told to, and leaves no key", async () => {
    const client = server.connect();
    await using one = await client.session();
    await using two = await client.session();
    await using held = await lockNamed(client, one, "busy");
    await assert.rejects(lockNamed(client, two, "busy", { timeoutMs: 50 }), {
      name: "ClientError",
      code: "DeadlineExceeded",
    });
    const stop = new AbortController();
    const reason = new Error("enough");
    const waiting = lockNamed(client, two, "busy", { signal: stop.signal });
    const failed = assert.rejects(waiting, (error) => error === reason);
    stop.abort(reason);
    await failed;
    await held.release();
    assert.equal((await client.get("busy/", { prefix: true })).count, 0);
    await using free = await lockNamed(client, two, "busy");
    assert.ok(free.token > held.token);
  });

  test("observers see the leader and what it proclaims, and who resigned proclaims no more", async () => {
    const client = server.connect();
    await using one = await client.session();
    await using two = await client.session();
    assert.equal(await electedLeader(client, "chair"), undefined);
    const first = await campaign(client, one, "chair", "one");
    const stop = new AbortController();
    const seen = observeElection(client, "chair", { signal: stop.signal });
    const value = async () => toUtf8((await seen.next()).value?.kv.value ?? new Uint8Array());
    assert.equal(await value(), "one");
    await first.proclaim("one, again");
    assert.equal(await value(), "one, again");
    const winning = campaign(client, two, "chair", "two");
    await first.resign();
    const second = await winning;
    assert.equal(await value(), "two");
    assert.ok(second.token > first.token);
    assert.equal(toUtf8((await electedLeader(client, "chair"))!.kv.value), "two");
    await assert.rejects(first.proclaim("still me"), NotLeaderError);
    const end = seen.next();
    stop.abort();
    assert.equal((await end).done, true);
    await second.resign();
  });
});
