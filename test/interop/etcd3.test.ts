/** The npm client "etcd3", which others wrote for etcd, over mutual TLS. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Etcd3 } from "etcd3";
import { startCluster, type TestCluster } from "../support/cluster.ts";

describe("etcd3", () => {
  let cluster: TestCluster;
  let client: Etcd3;

  before(async () => {
    cluster = await startCluster({ size: 3, tls: true });
    const pem = (text: string | undefined): Buffer => Buffer.from(text!);
    const { ca, cert, key } = cluster.identity;
    client = new Etcd3({
      // It would send an address as the name of the TLS server, which Node refuses.
      hosts: cluster.endpoints.map((endpoint) => endpoint.replace("127.0.0.1", "localhost")),
      credentials: { rootCertificate: pem(ca), certChain: pem(cert), privateKey: pem(key) },
    });
  });
  after(async () => {
    client?.close();
    await cluster?.destroy();
  });

  test("put, get, prefix, delete", async () => {
    await client.put("n/a").value("1");
    await client.put("n/b").value("2");
    assert.equal(await client.get("n/a").string(), "1");
    assert.deepEqual(await client.getAll().prefix("n/").strings(), { "n/a": "1", "n/b": "2" });
    assert.deepEqual(await client.getAll().prefix("n/").sort("Key", "Descend").limit(1).keys(), [
      "n/b",
    ]);
    assert.equal(await client.getAll().prefix("n/").count(), 2);
    const { deleted } = await client.delete().prefix("n/");
    assert.equal(Number(deleted), 2);
    assert.equal(await client.get("n/a").string(), null);
  });

  test("transactions choose their branch", async () => {
    const claim = () =>
      client
        .if("t", "Create", "==", 0)
        .then(client.put("t").value("mine"))
        .else(client.get("t"))
        .commit();
    assert.equal((await claim()).succeeded, true);
    const second = await claim();
    assert.equal(second.succeeded, false);
    assert.equal(second.responses[0].response_range.kvs[0].value.toString(), "mine");
  });

  test("software transactional memory: concurrent increments all count", async () => {
    await client.put("counter").value("0");
    const increment = () =>
      client.stm({ retries: 50 }).transact(async (tx) => {
        const count = Number(await tx.get("counter").string());
        await tx.put("counter").value(String(count + 1));
      });
    await Promise.all(Array.from({ length: 8 }, increment));
    assert.equal(await client.get("counter").string(), "8");
  });

  test("errors are recognised by their text", async () => {
    await assert.rejects(client.get("x").revision(1_000_000).string(), (error: Error) => {
      return /required revision is a future revision/.test(error.message);
    });
  });
});
