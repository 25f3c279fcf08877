/** Flags whose effect shows only in a real process: SO_REUSEPORT, no fsync, a small batch. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { withCluster } from "../support/cluster.ts";
import { runQuoratectl } from "../support/quoratectl.ts";

test("a second listener shares the ports, and writes without fsync survive the process", async () => {
  const flags = ["--socket-reuse-port", "--unsafe-no-fsync", "--backend-batch-limit=2"];
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
  });
});
