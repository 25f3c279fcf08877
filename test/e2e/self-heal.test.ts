/**
 * A member whose store was changed behind its back rebuilds it from the leader's, over mutual
 * TLS, and without an operator.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { levelKeyspaces } from "@quorate/host/node";
import { fromUtf8, KeyValue, KVService, MaintenanceService, toUtf8 } from "@quorate/proto";
import { leaderOf } from "../support/checks.ts";
import { TestClient } from "../support/client.ts";
import { withCluster } from "../support/cluster.ts";
import type { TestMember } from "../support/member.ts";

const { Put, Range } = KVService.methods;

/** Sets k7 of a stopped member to another value, as valid and as long. */
async function damage(member: TestMember): Promise<void> {
  const keyspace = await levelKeyspaces.open(`${member.options.dataDir}/member/store/db`, {
    create: false,
  });
  let changed = 0;
  for await (const slice of keyspace.scan({ from: fromUtf8("k"), to: fromUtf8("l") })) {
    for (const [key, record] of slice) {
      const kv = KeyValue.decode(record);
      if (toUtf8(kv.key) !== "k7") continue;
      await keyspace.write([
        { key, value: KeyValue.encode({ ...kv, value: fromUtf8("VALUE 17") }) },
      ]);
      changed++;
    }
  }
  await keyspace.close();
  assert.equal(changed, 1);
}

test("--self-heal, three processes", async () => {
  await withCluster(
    { size: 3, tls: true, flags: ["--corrupt-check-time=2s", "--self-heal"] },
    async (cluster) => {
      const odd = cluster.members.find((member) => member !== cluster.members[0])!;
      const client = new TestClient(cluster.members[0].clientAddress, cluster.identity);
      for (let i = 0; i < 30; i++)
        await client.call(
          Put,
          { key: fromUtf8(`k${i}`), value: fromUtf8(`value ${i + 10}`) },
          20_000,
        );
      // A linearizable read there: it has applied all of them.
      const before = new TestClient(odd.clientAddress, cluster.identity);
      await before.call(Range, { key: fromUtf8("k29") }, 20_000);
      before.close();
      await odd.terminate();
      await damage(odd);
      odd.start();
      const endMs = performance.now() + 60_000;
      while (!/has (?:made itself|rebuilt)/.test(odd.log())) {
        assert.ok(performance.now() < endMs, "it did not heal within a minute");
        await delay(100);
      }
      const healed = new TestClient(odd.clientAddress, cluster.identity);
      const { kvs } = await healed.call(Range, { key: fromUtf8("k7"), serializable: true }, 20_000);
      assert.equal(toUtf8(KeyValue.decode(kvs[0]).value), "value 17");
      assert.deepEqual(
        (await healed.call(MaintenanceService.methods.Alarm, {}, 20_000)).alarms,
        [],
      );
      await healed.call(Put, { key: fromUtf8("after"), value: fromUtf8("x") }, 20_000);
      assert.ok(await leaderOf(cluster));
      for (const one of [client, healed]) one.close();
    },
  );
});
