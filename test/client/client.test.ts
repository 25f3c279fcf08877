/** The client library against real members. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { type Client, compareVersion, opDelete, opGet, opPut, opTxn } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { fromUtf8, GrpcCode, LeaseService, toUtf8 } from "@quorate/proto";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { etcd, skipWithoutEtcd } from "../support/executables.ts";

suite("against etcd, one member", { skip: skipWithoutEtcd }, () => {
  let cluster: TestCluster;
  let client: Client;
  before(async () => {
    cluster = await startCluster({ executable: etcd!, size: 1 });
    client = connect({ endpoints: cluster.endpoints });
  });
  after(async () => {
    client?.close();
    await cluster?.destroy();
  });

  test("put, get, delete", async () => {
    const first = await client.put("a", "1");
    assert.equal(first.prevKv, undefined);
    const second = await client.put("a", "2", { prevKv: true });
    assert.equal(toUtf8(second.prevKv!.value), "1");
    assert.equal(second.header.revision, first.header.revision + 1);
    const got = await client.get("a");
    assert.equal(got.count, 1);
    assert.deepEqual(got.kvs[0], {
      key: fromUtf8("a"),
      value: fromUtf8("2"),
      createRevision: first.header.revision,
      modRevision: second.header.revision,
      version: 2,
      lease: 0n,
    });
    assert.equal(
      toUtf8((await client.get("a", { revision: first.header.revision })).kvs[0].value),
      "1",
    );
    assert.equal((await client.delete("a")).deleted, 1);
    assert.equal((await client.get("a")).count, 0);
  });

  test("ranges, orders and bytes that are no text", async () => {
    for (const key of ["r1", "r3", "r2"]) await client.put(key, key);
    await client.put(Uint8Array.from([0xff, 0x00]), Uint8Array.from([0x80]));
    const keys = async (...args: Parameters<Client["get"]>): Promise<string[]> =>
      (await client.get(...args)).kvs.map((kv) => toUtf8(kv.key));
    assert.deepEqual(await keys("r", { prefix: true }), ["r1", "r2", "r3"]);
    assert.deepEqual(await keys("r", { prefix: true, order: "descend", limit: 2 }), ["r3", "r2"]);
    assert.deepEqual(await keys("r", { prefix: true, sortBy: "mod" }), ["r1", "r3", "r2"]);
    assert.deepEqual(await keys("r2", { rangeEnd: "r3" }), ["r2"]);
    assert.deepEqual(
      (await client.get(Uint8Array.from([0xff]), { fromKey: true })).kvs[0].value,
      Uint8Array.from([0x80]),
    );
    assert.equal((await client.get("r", { prefix: true, countOnly: true })).count, 3);
    assert.equal((await client.delete("r", { prefix: true, prevKv: true })).prevKvs.length, 3);
  });

  test("transactions, also inside one another", async () => {
    const take = (): ReturnType<Client["txn"]> =>
      client.txn({
        compare: [compareVersion("lock", "=", 0)],
        success: [opPut("lock", "mine"), opTxn({ success: [opGet("lock")] })],
        failure: [opDelete("lock")],
      });
    const taken = await take();
    assert.equal(taken.succeeded, true);
    assert.equal(taken.responses.length, 2);
    const freed = await take();
    assert.equal(freed.succeeded, false);
    const [response] = freed.responses;
    assert.equal(response.kind === "delete" && response.result.deleted, 1);
  });

  test("errors carry the server's status and text, and etcd's name", async () => {
    const { header } = await client.put("c", "1");
    await client.put("c", "2");
    await client.compact(header.revision + 1, { physical: true });
    await assert.rejects(client.get("c", { revision: header.revision }), {
      name: "ClientError",
      grpcCode: GrpcCode.OutOfRange,
      code: "Compacted",
      message: "etcdserver: mvcc: required revision has been compacted",
      endpoint: cluster.endpoints[0],
    });
    await assert.rejects(client.get("c", { revision: 1_000_000 }), { code: "FutureRev" });
    await assert.rejects(client.put("", "x"), { code: "EmptyKey" });
    await assert.rejects(client.put("big", "x".repeat(1.7 * 1024 * 1024)), {
      code: "RequestTooLarge",
    });
  });

  test("status, hash and member list", async () => {
    const status = await client.status(cluster.endpoints[0]);
    assert.equal(status.leader, status.header!.memberId);
    const elsewhere = await client.hashKv(cluster.endpoints[0].replace("http://", ""));
    assert.equal((await client.hashKv(cluster.endpoints[0])).hash, elsewhere.hash);
    const { members } = await client.memberList();
    assert.deepEqual(
      members.map((member) => [member.name, member.clientURLs]),
      [["m0", cluster.endpoints]],
    );
  });

  test("a method without a function of its own can be called by its descriptor", async () => {
    const answer = await client.call(LeaseService.methods.LeaseGrant, { TTL: 60 }, false);
    assert.equal((await client.put("leased", "x", { lease: answer.ID })).header.revision > 0, true);
    assert.equal((await client.get("leased")).kvs[0].lease, answer.ID);
  });

  test("a closed client ends what is under way and refuses what comes", async () => {
    const other = connect({ endpoints: cluster.endpoints });
    await other.put("x", "y");
    other.close();
    await assert.rejects(other.get("x"), { grpcCode: GrpcCode.Canceled });
  });
});

suite("against etcd, three members with mutual TLS", { skip: skipWithoutEtcd }, () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await startCluster({ executable: etcd!, size: 3, tls: true });
  });
  after(async () => {
    await cluster?.destroy();
  });

  test("without the certificate it is refused, with it the cluster answers", async () => {
    const { ca, cert, key } = cluster.identity;
    const outsider = connect({ endpoints: cluster.endpoints, tls: { ca: ca! }, timeoutMs: 1000 });
    await assert.rejects(outsider.get("a"), { name: "ClientError" });
    outsider.close();
    const plain = connect({ endpoints: [cluster.members[0].clientAddress], timeoutMs: 1000 });
    await assert.rejects(plain.get("a"), { name: "ClientError" });
    plain.close();
    const client = connect({
      endpoints: cluster.endpoints,
      tls: { ca: ca!, cert: cert!, key: key! },
    });
    await client.put("a", "b");
    assert.equal((await client.get("a")).count, 1);
    client.close();
    const trusting = connect({
      endpoints: cluster.endpoints,
      tls: {
        cert: readFileSync(cluster.certs!.client),
        key: readFileSync(cluster.certs!.clientKey),
        insecureSkipVerify: true,
      },
    });
    assert.equal((await trusting.get("a")).count, 1);
    trusting.close();
  });

  test("when members die one after the other, calls go on through the rest", async () => {
    const { ca, cert, key } = cluster.identity;
    const tls = { ca: ca!, cert: cert!, key: key! };
    // No process listens on port 1: connecting to it fails at once.
    const client = connect({
      endpoints: ["https://127.0.0.1:1", ...cluster.endpoints],
      tls,
      timeoutMs: 15_000,
    });
    await client.put("n", "0");
    await cluster.members[0].kill();
    for (let i = 1; i <= 20; i++) {
      await client.get("n");
      assert.equal((await client.get("n", { serializable: true })).count, 1);
    }
    cluster.members[0].start();
    await cluster.members[0].waitReady();
    await cluster.members[1].kill();
    assert.equal((await client.get("n")).count, 1);
    await client.put("n", "1");
    client.close();
  });
});
