/**
 * The shape of npm's etcd3, beside npm's etcd3 on one server: the same calls, and the same results,
 * events and errors. Its own suite is run by ./dev compare etcd3.
 * @slow
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import * as ours from "@quorate/client/etcd3";
import * as npm from "etcd3";
import { until } from "../support/until.ts";
import { onEachServer } from "./servers.ts";

onEachServer(import.meta.filename, (server) => {
  /** Both clients, closed at the end of the block. */
  function both(): Disposable & { readonly a: npm.Etcd3; readonly b: ours.Etcd3 } {
    const hosts = server.cluster.endpoints;
    const a = new npm.Etcd3({ hosts });
    const b = new ours.Etcd3({ hosts });
    return {
      a,
      b,
      [Symbol.dispose]() {
        a.close();
        b.close();
      },
    };
  }

  test("results are those of npm's etcd3, to the field", async () => {
    using clients = both();
    const { a, b } = clients;
    await a.delete().all();
    const lease = b.lease(60);
    await b.put("n").value(7).lease(lease.grant());
    await b.put("a/1").value('{"x":1}');
    await b.put("a/2").value(Buffer.from([0xff, 0]));
    // Typed as npm's client; the test is that ours does the same.
    const reads: readonly ((client: npm.Etcd3) => Promise<unknown>)[] = [
      (client) => client.get("n").exec(),
      (client) => client.get("n").number(),
      (client) => client.get("n").exists(),
      (client) => client.get("none").string(),
      (client) => client.get("none").exec(),
      (client) => client.get("a/1").json(),
      (client) => client.get("a/2").buffer(),
      (client) => client.getAll().prefix("a/").exec(),
      (client) => client.getAll().inRange({ start: "a/2", end: "n" }).buffers(),
      (client) => client.getAll().sort("Mod", "Descend").limit(2).keys(),
      (client) => client.getAll().count(),
      (client) => client.namespace("a/").getAll().strings(),
      (client) => client.if("n", "Lease", "!=", 0).then(client.get("n")).commit(),
      (client) => client.if("n", "Version", ">", 1).else(client.get("a/1")).commit(),
      (client) => client.cluster.memberList({}),
      (client) => client.maintenance.alarm({ action: "Get" }),
      (client) => client.leaseClient.leaseLeases(),
    ];
    for (const read of reads) {
      const wanted = await read(a);
      assert.deepEqual(await read(b as unknown as npm.Etcd3), wanted, String(read));
      assert.ok(wanted !== undefined);
    }
    const writes: readonly ((client: npm.Etcd3) => Promise<unknown>)[] = [
      (client) => client.put("w").value("1").exec(),
      (client) => client.put("w").value("2").getPrevious(),
      (client) => client.put("w").touch(),
      (client) => client.delete().key("w").getPrevious(),
      (client) => client.delete().prefix("w").exec(),
      (client) => client.if("w", "Create", "==", 0).then(client.put("w").value("")).commit(),
    ];
    // Only their revisions may differ.
    const shape = (value: unknown): unknown => {
      const text = JSON.stringify(value);
      return JSON.parse(text.replace(/("(?:\w+_)?revision"|"version"):"\d+"/g, '$1:"1"'));
    };
    const written: unknown[][] = [];
    for (const client of [a, b as unknown as npm.Etcd3]) {
      await client.delete().key("w");
      const results: unknown[] = [];
      for (const write of writes) results.push(shape(await write(client)));
      written.push(results);
    }
    assert.deepEqual(written[1], written[0]);
    await lease.revoke();
  });

  test("errors are of the classes of npm's etcd3", async () => {
    using clients = both();
    const { a, b } = clients;
    const failing: readonly ((client: npm.Etcd3) => Promise<unknown>)[] = [
      (client) => client.get("k").revision(1_000_000).exec(),
      (client) => client.put("k").value("v").lease("12345").exec(),
      (client) => client.role("none").delete(),
      (client) => client.user("none").delete(),
      (client) => client.leaseClient.leaseRevoke({ ID: "12345" }),
      (client) => client.put("").value("v").exec(),
      (client) =>
        client
          .get("k")
          .options({ deadline: Date.now() - 1000 })
          .exec(),
    ];
    for (const call of failing) {
      const [wanted, got] = await Promise.all(
        [a, b as unknown as npm.Etcd3].map((client) =>
          call(client).then(
            () => assert.fail(`${call} does not fail`),
            (error: Error) => error,
          ),
        ),
      );
      assert.equal(got.constructor.name, wanted.constructor.name, String(call));
      assert.equal(ours.isRecoverableError(got), npm.isRecoverableError(wanted));
      // Each has its own words for a deadline.
      if (wanted.constructor !== npm.GRPCDeadlineExceededError)
        assert.equal(got.message, wanted.message);
    }
    b.close();
    await assert.rejects(b.get("k").exec(), ours.ClientClosedError);
  });

  test("events are those of npm's etcd3, once, also over a restart of the member", async () => {
    using clients = both();
    const { a, b } = clients;
    const seen = { a: [] as unknown[], b: [] as unknown[] };
    const theirs = await a.namespace("e/").watch().prefix("").withPreviousKV().create();
    const own = await b.namespace("e/").watch().prefix("").withPreviousKV().create();
    const deletions: string[] = [];
    const filtered = await b.watch().prefix("e/").only("delete").create();
    filtered.on("put", ({ key }) => deletions.push(`put ${key}`));
    filtered.on("delete", ({ key }) => deletions.push(`delete ${key}`));
    for (const kind of ["put", "delete"] as const) {
      theirs.on(kind as "put", (...values) => seen.a.push([kind, ...values]));
      own.on(kind, (...values) => seen.b.push([kind, ...values]));
    }
    await a.put("e/1").value("x");
    await b.put("e/1").value("y");
    await b.delete().prefix("e/");
    await until(
      "both have seen all",
      () => seen.a.length === 3 && seen.b.length === 3 && deletions.length === 1,
    );
    assert.deepEqual(seen.b, seen.a);
    assert.deepEqual(deletions, ["delete e/1"]);
    await theirs.cancel();

    const lease = b.lease(60);
    // Before, its time to live is not known, and it is given up after a call's time.
    await once(lease, "keepaliveSucceeded");
    const failed = once(lease, "keepaliveFailed");
    const disconnected = once(own, "disconnected");
    const connected = disconnected.then(() => once(own, "connected"));
    const [member] = server.cluster.members;
    await member!.kill();
    await disconnected;
    await failed;
    const renewed = once(lease, "keepaliveSucceeded");
    member!.start();
    await connected;
    await renewed;
    await b.put("e/2").value("z");
    await until("the watch goes on", () => seen.b.length === 4);
    assert.deepEqual(await filtered.cancel(), undefined);
    const ended = once(own, "end");
    b.close();
    await ended;
  });

  test("locks and elections are one with those of npm's etcd3", async () => {
    using clients = both();
    const { a, b } = clients;
    const lock = await a.lock("l").acquire();
    await assert.rejects(b.lock("l").acquire(), ours.EtcdLockFailedError);
    await lock.release();
    await b.lock("l").do(() => assert.rejects(a.lock("l").acquire(), npm.EtcdLockFailedError));
    await (await a.lock("l").acquire()).release();

    const first = await b.election("e").campaign("ours").wait();
    const second = a.election("e").campaign("theirs");
    const third = b.election("e").campaign("third");
    await second.getCampaignKey();
    const observer = await b.election("e").observe();
    assert.equal(observer.leader(), "ours");
    await first.proclaim("still ours");
    await until("the new value", () => observer.leader() === "still ours");
    const elected = Promise.race([second.wait(), third.wait()]);
    await first.resign();
    await assert.rejects(first.proclaim("x"), ours.NotCampaigningError);
    // The second and the third entered at the same time: either may be next.
    const leader = (await elected) === third ? "third" : "theirs";
    await until("the next leader", () => observer.leader() === leader);
    await Promise.all([second.resign(), third.resign()]);
    await until("nobody leads", () => !observer.hasLeader);
    await observer.cancel();
  });

  test("a lease that ends elsewhere is lost, and a revoked one says nothing", async () => {
    using clients = both();
    const { a, b } = clients;
    const lease = b.lease(2);
    const id = await lease.grant();
    const lost = once(lease, "lost");
    await a.leaseClient.leaseRevoke({ ID: id });
    const [error] = await lost;
    assert.ok(error instanceof ours.EtcdLeaseInvalidError);
    assert.ok(lease.revoked());
    await assert.rejects(lease.put("k").value("v").exec(), ours.EtcdLeaseInvalidError);
    const other = b.lease(60);
    other.on("lost", () => assert.fail("it was revoked"));
    await other.put("k").value("v");
    await other.revoke();
    assert.equal(await a.get("k").string(), null);
  });

  test("a transaction may write what is newer than all that it read", async () => {
    using clients = both();
    const { b } = clients;
    await b.put("old").value("1");
    await b.put("new").value("1");
    await b.stm({ retries: 0 }).transact(async (tx) => {
      await tx.put("new").value(`${await tx.get("old")}2`);
    });
    assert.equal(await b.get("new").string(), "12");
    const conflict = b.stm({ retries: 0 }).transact(async (tx) => {
      await tx.get("old");
      await b.put("new").value("3");
      await tx.put("new").value("4");
    });
    await assert.rejects(conflict, ours.STMConflictError);
  });

  test("what stands in place of the cluster gets the calls", async () => {
    using clients = both();
    const { b } = clients;
    const calls: unknown[] = [];
    b.mock({
      exec: async <T>(...words: unknown[]) => {
        calls.push(words.slice(0, 2));
        return { kvs: [] } as T;
      },
    });
    assert.equal(await b.get("k").string(), null);
    b.unmock();
    assert.deepEqual(calls, [["KV", "range"]]);
  });
});

test("options that make no sense are refused, and those of grpc-js are taken", () => {
  assert.throws(() => new ours.Etcd3({ hosts: [] }), /at least one host/);
  assert.throws(() => new ours.Etcd3({ hosts: ["https://a", "http://b"] }), /mix of secure/);
  assert.throws(() => new ours.Etcd3({}).lease(0), RangeError);
  assert.throws(() => new ours.Etcd3({}).getAll().sort("Key", "Up" as "Ascend"), /Ascend/);
  new ours.Etcd3({ grpcOptions: { "grpc.keepalive_time_ms": 10_000, "grpc.other": 1 } }).close();
});
