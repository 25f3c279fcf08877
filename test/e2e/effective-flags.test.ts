/**
 * Flags whose effect shows only in a real process: SO_REUSEPORT, no fsync, a small batch, learners,
 * HTTP on a port of its own.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { withCluster } from "../support/cluster.ts";
import { freePorts } from "../support/ports.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

test("a second listener shares the ports, and writes without fsync survive the process", async () => {
  const flags = [
    "--socket-reuse-port",
    "--unsafe-no-fsync",
    "--backend-batch-limit=2",
    "--max-learners=2",
  ];
  await withCluster({ size: 1, flags }, async ({ members: [member] }) => {
    const ctl = (...args: string[]) => runQuoratectl([member.clientUrl], args);
    const urls = (await ctl("member", "list")).stdout.match(/http:[^,\s]+/g)!;
    assert.equal(urls.length, 2);
    for (const url of urls) {
      const second = createServer();
      second.listen({ host: "127.0.0.1", port: Number(new URL(url).port), reusePort: true });
      await once(second, "listening");
      second.close();
      await once(second, "close");
    }
    assert.match(member.log(), /fsync is off/);
    for (let i = 0; i < 5; i++) assert.equal((await ctl("put", `k${i}`, "v")).code, 0);
    await member.kill();
    member.start();
    await member.waitReady();
    const { stdout } = await ctl("get", "k", "--prefix", "--keys-only", "--write-out=simple");
    assert.deepEqual(stdout.trim().split(/\n+/), ["k0", "k1", "k2", "k3", "k4"]);

    const learner = (i: number) =>
      ctl("member", "add", `l${i}`, "--learner", `--peer-urls=http://127.0.0.1:${i}`);
    for (const i of [1, 2]) assert.equal((await learner(i)).code, 0);
    assert.match((await learner(3)).stderr, /too many learner members in cluster/);
  });
});

test("with --listen-client-http-urls the other port serves gRPC alone", async () => {
  const [port] = await freePorts(1);
  const http = `http://127.0.0.1:${port}`;
  await withCluster({ size: 1 }, async ({ members: [member] }) => {
    await member.kill();
    member.start([`--listen-client-http-urls=${http}`]);
    const status = async (url: string) => (await fetch(`${url}/health`)).status;
    await until("it is healthy", () =>
      status(http).then(
        (code) => code === 200,
        () => false,
      ),
    );
    const key = Buffer.from("k").toString("base64");
    const range = { method: "POST", body: JSON.stringify({ key }) };
    assert.equal((await runQuoratectl([member.clientUrl], ["put", "k", "v"])).code, 0);
    assert.match(await (await fetch(`${http}/v3/kv/range`, range)).text(), /"count":"1"/);
    assert.notEqual((await runQuoratectl([http], ["get", "k", "--command-timeout=1s"])).code, 0);
    await assert.rejects(status(member.clientUrl));
    await assert.rejects(fetch(`${member.clientUrl}/v3/kv/range`, range));
  });
});
