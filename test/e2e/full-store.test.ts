/**
 * The story of every administrator of etcd: the store is full. A quota of 16 MiB is filled; reads
 * go on, writes are refused, the alarm names the member; then compact, defragment, disarm, and
 * writes go on. With self-clearing on no operator has to disarm.
 */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { quoratectl } from "@quorate/ctl";
import {
  AlarmType,
  fromUtf8,
  idToHex,
  KeyValue,
  KVService,
  LeaseService,
  MaintenanceService,
  toUtf8,
} from "@quorate/proto";
import { CallError, TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { skipWithoutEtcdctl } from "../support/executables.ts";
import { get, metric } from "../support/http.ts";
import { until } from "../support/until.ts";

const QUOTA_BYTES = 16 * 1024 * 1024;
const NO_SPACE = "etcdserver: mvcc: database space exceeded";
const RESOURCE_EXHAUSTED = 8;
/** The keys are overwritten again and again: most of what fills the store is history. */
const KEYS = 16;
const VALUE = new Uint8Array(64 * 1024).fill(0x78);
const { Put, Range, DeleteRange, Txn, Compact } = KVService.methods;

/** What quoratectl prints for a command; stdout alone, the command must succeed by default. */
async function ctl(
  { endpoints }: Pick<TestCluster, "endpoints">,
  args: readonly string[],
  expectedCode = 0,
): Promise<string> {
  const { code, stdout, stderr } = await runInProcess(
    quoratectl,
    [`--endpoints=${endpoints.join(",")}`, "--command-timeout=60s", ...args],
    { sleep: async () => {} },
  );
  assert.equal(code, expectedCode, `${args.join(" ")}: ${stderr}`);
  return stdout + (expectedCode === 0 ? "" : stderr);
}

async function noSpace(call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof CallError);
    assert.deepEqual([error.code, error.details], [RESOURCE_EXHAUSTED, NO_SPACE]);
    return true;
  });
}

for (const clearing of [true, false]) {
  suite(`a full store, self-clearing ${clearing ? "on" : "off"}`, () => {
    let cluster: TestCluster;
    let clients: TestClient[];
    let fullMember: bigint;

    before(async () => {
      const flags = [
        `--quota-backend-bytes=${QUOTA_BYTES}`,
        ...(clearing ? [] : ["--quota-auto-disarm=false"]),
      ];
      cluster = await startCluster({ size: 3, flags });
      clients = cluster.members.map((member) => new TestClient(member.clientAddress));
    });
    after(async () => {
      for (const client of clients ?? []) client.close();
      await cluster?.destroy();
    });

    const put = (client: TestClient, key: string, value: Uint8Array = VALUE) =>
      client.call(Put, { key: fromUtf8(key), value }, 20_000);

    test("it fills up, and says so at 80 and 90 percent before", async () => {
      let puts = 0;
      for (;;) {
        try {
          await put(clients[1], `k${puts % KEYS}`);
          puts++;
        } catch (error) {
          assert.equal((error as CallError).details, NO_SPACE);
          break;
        }
        assert.ok(puts < 1000, "the quota is never reached");
      }
      assert.ok(
        puts * VALUE.length > 0.98 * QUOTA_BYTES && puts * VALUE.length < QUOTA_BYTES,
        `${puts} puts`,
      );
      const warnings = [
        ...cluster.members[1]
          .log()
          .matchAll(/the store is close to its quota.*"used-percent":(\d+)/g),
      ];
      assert.deepEqual(
        warnings.map(([, percent]) => percent),
        ["80", "90"],
      );
      assert.equal(
        await metric(cluster, cluster.members[1], "quorate_server_quota_warning_percent"),
        90,
      );
    });

    test("the alarm names the member, everywhere", async () => {
      const status = await clients[1].call(MaintenanceService.methods.Status, {});
      fullMember = status.header!.memberId;
      await until("the alarm on all members", async () => {
        const healths = await Promise.all(
          cluster.members.map((member) => get(cluster, member, "/health")),
        );
        return healths.every(({ status: code }) => code === 503);
      });
      for (const [i, client] of clients.entries()) {
        const { alarms } = await client.call(MaintenanceService.methods.Alarm, {});
        assert.deepEqual(alarms, [{ memberID: fullMember, alarm: AlarmType.NOSPACE }]);
        const { errors, dbSizeQuota } = await client.call(MaintenanceService.methods.Status, {});
        assert.deepEqual(errors, [`memberID:${fullMember} alarm:NOSPACE`]);
        assert.equal(dbSizeQuota, QUOTA_BYTES);
        const member = cluster.members[i];
        const health = await get(cluster, member, "/health");
        assert.equal(health.body, '{"health":"false","reason":"ALARM NOSPACE"}\n');
        assert.equal((await get(cluster, member, "/health?exclude=NOSPACE")).status, 200);
        assert.equal(await metric(cluster, member, "etcd_server_quota_backend_bytes"), QUOTA_BYTES);
        assert.equal(await metric(cluster, member, "etcd_debugging_server_alarms"), 1);
      }
      assert.equal(await ctl(cluster, ["alarm", "list"]), `memberID:${fullMember} alarm:NOSPACE\n`);
      assert.match(await ctl(cluster, ["endpoint", "health"], 1), /Active Alarm\(s\): NOSPACE /);
    });

    test("writes are refused on every member, reads and deletions go on", async () => {
      for (const client of clients) {
        await noSpace(put(client, "small", fromUtf8("x")));
        const op = {
          case: "requestPut" as const,
          value: { key: fromUtf8("small"), value: fromUtf8("x"), lease: 0n },
        };
        const value = { ...op.value, prevKv: false, ignoreValue: false, ignoreLease: false };
        await noSpace(
          client.call(Txn, { success: [{ request: { case: "requestPut", value } }] }, 20_000),
        );
        await noSpace(client.call(LeaseService.methods.LeaseGrant, { TTL: 60 }, 20_000));
        const { kvs } = await client.call(Range, { key: fromUtf8("k0") });
        assert.equal(KeyValue.decode(kvs[0]).value.length, VALUE.length);
      }
      assert.equal((await clients[0].call(DeleteRange, { key: fromUtf8("k15") })).deleted, 1);
      // What was deleted is history still: it frees no space.
      await noSpace(put(clients[0], "k15"));
    });

    test("etcdctl sees the same", { skip: skipWithoutEtcdctl }, async () => {
      const etcdctl = etcdctlFor(cluster);
      const list = await etcdctl(["alarm", "list"]);
      // Older ones have a blank at the end.
      assert.match(list.stdout, new RegExp(`^memberID:${fullMember} alarm:NOSPACE ?\\n$`));
      const endpoints = cluster.endpoints.slice(0, 1);
      for (const form of ["json", "fields"]) {
        const args = ["alarm", "list", "-w", form];
        assert.equal(
          await ctl({ endpoints }, args),
          (await etcdctlFor(cluster, endpoints)(args)).stdout,
        );
      }
      const refused = await etcdctl(["put", "a", "b"]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, new RegExp(NO_SPACE));
      assert.match((await etcdctl(["get", "k0", "--keys-only"])).stdout, /^k0\n/);
      assert.match((await etcdctl(["endpoint", "status", "-w", "table"])).stdout, /alarm:NOSPACE/);
    });

    test("compact, defragment, and there is space again", async () => {
      const { header } = await clients[0].call(Range, { key: fromUtf8("k0"), countOnly: true });
      const before = await clients[0].call(MaintenanceService.methods.Status, {});
      await clients[0].call(Compact, { revision: header!.revision, physical: true }, 60_000);
      const defrag = await ctl(cluster, ["defrag", "--cluster"]);
      assert.equal(
        defrag.match(
          /^Finished defragmenting etcd member\[http:\/\/127\.0\.0\.1:\d+\]\. took .+s$/gm,
        )?.length,
        3,
        defrag,
      );
      for (const client of clients) {
        await until("compaction on every member", async () => {
          const { dbSizeInUse } = await client.call(MaintenanceService.methods.Status, {});
          return dbSizeInUse < (KEYS + 1) * VALUE.length;
        });
      }
      const now = await clients[0].call(MaintenanceService.methods.Status, {});
      assert.ok(
        now.dbSizeInUse > (KEYS - 2) * VALUE.length && now.dbSizeInUse < before.dbSizeInUse / 8,
        `${now.dbSizeInUse} bytes in use`,
      );
    });

    if (clearing) {
      test("no operator has to disarm", async () => {
        await until(
          "the end of the alarm",
          async () => (await ctl(cluster, ["alarm", "list"])) === "",
        );
        assert.ok(
          cluster.members.some((member) =>
            /there is \w+ again after a compaction; ending the alarm/.test(member.log()),
          ),
        );
      });
    } else {
      test("disarm", async () => {
        await delay(2000);
        await noSpace(put(clients[2], "small", fromUtf8("x")));
        assert.equal(
          await ctl(cluster, ["alarm", "disarm"]),
          `memberID:${fullMember} alarm:NOSPACE\n`,
        );
        assert.equal(await ctl(cluster, ["alarm", "list"]), "");
      });
    }

    test("writes go on", async () => {
      for (const client of clients) await put(client, "small", fromUtf8("after"));
      const { kvs } = await clients[2].call(Range, { key: fromUtf8("small") });
      assert.equal(toUtf8(KeyValue.decode(kvs[0]).value), "after");
      for (const member of cluster.members) await member.waitReady();
      const hashes = await Promise.all(
        clients.map((client) => client.call(MaintenanceService.methods.HashKV, {})),
      );
      assert.equal(new Set(hashes.map(({ hash }) => hash)).size, 1);
      assert.match(idToHex(fullMember), /^[0-9a-f]+$/);
    });
  });
}
