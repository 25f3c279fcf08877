/**
 * One client of a real member asks for too much in many ways; another one on a connection of its
 * own is served all the while.
 * @slow
 */
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Client, Metadata } from "@grpc/grpc-js";
import {
  ClusterService,
  fromLatin1,
  KVService,
  MemberAddRequest,
  PutRequest,
  TxnRequest,
} from "@quorate/proto";
import { openChannel, TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";

const { Put, Range, Txn } = KVService.methods;
const { MemberAdd, MemberList } = ClusterService.methods;

/** What a call with these bytes came to: "ok", or the error's words. */
function raw(
  channel: Client,
  path: string,
  bytes: Uint8Array,
  metadata: Record<string, string> = {},
): Promise<string> {
  const sent = new Metadata();
  for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
  const same = (message: Buffer) => message;
  return new Promise((resolve) => {
    channel.makeUnaryRequest(
      path,
      same,
      same,
      Buffer.from(bytes),
      sent,
      { deadline: Date.now() + 60_000 },
      (error) => resolve(error ? error.details : "ok"),
    );
  });
}

async function metricsText(cluster: TestCluster): Promise<string> {
  return (await fetch(`${cluster.members[0].clientUrl}/metrics`)).text();
}

/** Runs an attack while another client puts; fails if a put does. */
async function beside(
  cluster: TestCluster,
  attack: (channel: Client) => Promise<void>,
): Promise<void> {
  const address = cluster.members[0].clientAddress;
  const channel = openChannel(address);
  const neighbour = new TestClient(address);
  let isOver = false;
  let puts = 0;
  const attacked = attack(channel).finally(() => {
    isOver = true;
  });
  try {
    while (!isOver || puts === 0) {
      await neighbour.call(Put, { key: fromLatin1("neighbour"), value: fromLatin1(`${++puts}`) });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await attacked;
    const { kvs } = await neighbour.call(Range, { key: fromLatin1("neighbour") });
    assert.equal(kvs.length, 1);
  } finally {
    channel.close();
    neighbour.close();
  }
}

test("requests of a million parts, floods of members, invented versions, bombs of gzip", async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    await beside(cluster, async (channel) => {
      const compares = TxnRequest.encode({
        compare: Array.from({ length: 700_000 }, () => ({}) as never),
      });
      const urls = MemberAddRequest.encode({ peerURLs: new Array<string>(400_000).fill("x") });
      const unknown = Buffer.alloc(1_500_000, Uint8Array.of(15 * 8, 1));
      for (let i = 0; i < 10; i++) {
        assert.equal(
          await raw(channel, Txn.path, compares),
          "etcdserver: too many operations in txn request",
        );
        assert.match(
          await raw(channel, MemberAdd.path, urls),
          /^etcdserver: request has too many fields: more than 20000$/,
        );
        assert.match(
          await raw(channel, Put.path, unknown),
          /^etcdserver: request has too many fields/,
        );
      }
    });

    await beside(cluster, async (channel) => {
      const version = (i: number) => ({
        "client-api-version": `${i}`.padEnd(i % 2 === 0 ? 20 : 2000, "9"),
      });
      const range = Buffer.from([10, 1, 107]);
      for (let i = 0; i < 2000; i += 50) {
        await Promise.all(
          Array.from({ length: 50 }, (_, at) => raw(channel, Range.path, range, version(i + at))),
        );
      }
    });
    const metrics = await metricsText(cluster);
    assert.ok(metrics.length < 500_000, `${metrics.length} bytes of metrics`);
    assert.ok(
      metrics.split("\n").filter((line) => line.startsWith("etcd_server_client_requests_total{"))
        .length < 50,
    );

    // The first one to be added cannot be started, but as a learner it does no harm; the
    // others are refused.
    await beside(cluster, async (channel) => {
      const adds = Array.from({ length: 500 }, (_, i) => {
        const request = MemberAddRequest.encode({
          peerURLs: [`http://10.255.255.1:${1000 + i}`],
          isLearner: true,
        });
        return raw(channel, MemberAdd.path, request);
      });
      const results = await Promise.all(adds);
      assert.equal(results.filter((result) => result === "ok").length, 1);
      const refusals = new Set(results.filter((result) => result !== "ok"));
      for (const text of refusals)
        assert.match(text, /too many learner members|too many requests|request timed out/);
    });
    const client = new TestClient(cluster.members[0].clientAddress);
    assert.equal((await client.call(MemberList, {})).members.length, 2);
    client.close();

    await beside(cluster, async () => {
      const bomb = gzipSync(
        PutRequest.encode({ key: fromLatin1("bomb"), value: new Uint8Array(1_400_000) }),
      );
      assert.ok(bomb.length < 3000);
      const session = connectHttp2(cluster.members[0].clientUrl);
      const prefix = Buffer.from([1, 0, 0, bomb.length >> 8, bomb.length & 0xff]);
      const headers = {
        ":method": "POST",
        ":path": Put.path,
        "content-type": "application/grpc",
        te: "trailers",
        "grpc-encoding": "gzip",
      };
      const answers = Array.from({ length: 100 }, () => {
        const stream = session.request(headers);
        let status = "none";
        stream.on("response", (received) => (status = String(received["grpc-status"] ?? status)));
        stream.on("trailers", (received) => (status = String(received["grpc-status"] ?? status)));
        stream.on("error", () => {});
        stream.resume();
        stream.end(Buffer.concat([prefix, bomb]));
        return new Promise<string>((resolve) => stream.on("close", () => resolve(status)));
      });
      assert.deepEqual(new Set(await Promise.all(answers)), new Set(["0"]));
      session.destroy();
    });
    assert.match(await metricsText(cluster), /^quorate_rpc_inflated_messages_total 100$/m);
  });
});

test("a member serves on a unix socket too; a crowd there takes nothing of the TCP port's", async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    const [member] = cluster.members;
    const path = join(cluster.dir, "q.sock");
    await member.kill();
    member.start([`--listen-client-urls=${member.clientUrl},unix://${path}`]);
    await cluster.waitReady();
    const local = openChannel(`unix:${path}`);
    assert.equal(
      await raw(
        local,
        Put.path,
        PutRequest.encode({ key: fromLatin1("k"), value: fromLatin1("v") }),
      ),
      "ok",
    );
    const crowd = Array.from({ length: 300 }, () =>
      connectHttp2(member.clientUrl, { createConnection: () => connect({ path }) }),
    );
    for (const one of crowd) one.on("error", () => {});
    await beside(cluster, async () => {
      await Promise.all(
        crowd.map((one) => new Promise((resolve) => one.once("remoteSettings", resolve))),
      );
    });
    for (const one of crowd) one.destroy();
    local.close();
  });
});
