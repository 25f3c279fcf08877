/**
 * The alerts and the dashboard that etcd's project publishes (contrib/mixin), unchanged, on a
 * cluster of ours: every series that they name is there, every query of the dashboard has an
 * answer, and alerts hold when, and only when, something is wrong.
 *
 * QUORATE_ETCD_MIXIN names a directory with what jsonnet makes of the mixin: rules.yaml
 * (`prometheusAlerts`) and, with any other name, dashboards (`*.json`). docs/operate/operations.md
 * says how.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fromLatin1, KVService, LeaseService } from "@quorate/proto";
import { parse } from "yaml";
import { MemberDisk } from "../robustness/disks.ts";
import { TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { type Prometheus, skipWithoutPrometheus, startPrometheus } from "../support/prometheus.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";
import { Writers } from "../support/writers.ts";

const mixin = process.env["QUORATE_ETCD_MIXIN"];
const skip =
  mixin === undefined
    ? "QUORATE_ETCD_MIXIN names no built mixin (docs/operate/operations.md)"
    : skipWithoutPrometheus;

const JOB = "etcd";
const QUOTA_BYTES = 16 * 2 ** 20;

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
}

/** Every `name{labels}` of an expression, without ranges. */
function selectorsOf(expr: string): string[] {
  return expr.match(/\b[a-z_]+\{[^}]*\}/g) ?? [];
}

/** The queries of a dashboard of either form: panels at the top, or in rows. */
function queriesOf(dashboard: unknown): string[] {
  if (typeof dashboard !== "object" || dashboard === null) return [];
  const own = (dashboard as { expr?: unknown }).expr;
  const inner = Object.values(dashboard).flatMap(queriesOf);
  return typeof own === "string" ? [own, ...inner] : inner;
}

/** The queries as Grafana sends them. */
function dashboardQueries(dir: string): string[] {
  const files = readdirSync(dir).filter((name) => name.endsWith(".json"));
  assert.ok(files.length > 0, `no dashboard in ${dir}`);
  return files
    .flatMap((name) => queriesOf(JSON.parse(readFileSync(join(dir, name), "utf8"))))
    .map((expr) => expr.replaceAll("$__rate_interval", "1m").replaceAll("$cluster", JOB));
}

/** One of each kind of call that the rules and the dashboard look at. */
async function callOnce(cluster: TestCluster): Promise<void> {
  for (const { clientAddress } of cluster.members) {
    const client = new TestClient(clientAddress);
    try {
      await client.call(KVService.methods.Put, { key: fromLatin1("key") });
      await client.call(KVService.methods.Range, { key: fromLatin1("key") });
      await client.call(LeaseService.methods.LeaseGrant, { TTL: 60 });
    } finally {
      client.close();
    }
  }
}

/** Starts the cluster and Prometheus, waits until all is seen, and runs `body`. */
async function withMixin(
  t: TestContext,
  disks: ReadonlyMap<string, MemberDisk>,
  body: (cluster: TestCluster, prometheus: Prometheus) => Promise<void>,
): Promise<void> {
  const dir = scratchDirectory("quorate-mixin-", t);
  const flags = ["--metrics=extensive", `--quota-backend-bytes=${QUOTA_BYTES}`];
  const envOf = (name: string): Record<string, string> => disks.get(name)!.env;
  await withCluster({ size: 3, flags, envOf }, async (cluster) => {
    const prometheus = await startPrometheus({
      dir,
      job: JOB,
      targets: cluster.members.map(({ clientAddress }) => clientAddress),
      rules: [join(resolve(mixin!), "rules.yaml")],
    });
    try {
      await until(
        "all members are scraped",
        async () => (await prometheus.query("sum(up)").catch(() => []))[0]?.value === 3,
      );
      await body(cluster, prometheus);
    } finally {
      await prometheus.close();
    }
  });
}

function newDisks(t: TestContext): Map<string, MemberDisk> {
  const dir = scratchDirectory("quorate-mixin-disks-", t);
  return new Map(
    ["m0", "m1", "m2"].map((name) => [
      name,
      new MemberDisk(join(dir, name), join(dir, `${name}.json`), false),
    ]),
  );
}

/** Waits until these alerts hold, whether or not they have held for long enough to be sent. */
async function untilAlerts(prometheus: Prometheus, names: readonly string[]): Promise<void> {
  let seen = "";
  const holds = async (): Promise<boolean> => {
    const all = new Set((await prometheus.alerts()).map(({ name }) => name));
    seen = [...all].join(" ");
    return names.every((name) => all.has(name));
  };
  try {
    await until(`alerts: ${names.join(" ")}`, holds, 500);
  } catch (error) {
    throw new Error(`${(error as Error).message}; there were: ${seen}`);
  }
}

test("every series and every query of etcd's mixin has a value on our members", {
  skip,
}, async (t) => {
  const rules = parse(readFileSync(join(mixin!, "rules.yaml"), "utf8")) as Rules;
  const queries = dashboardQueries(mixin!);
  const exprs = rules.groups.flatMap(({ rules: all }) => all.map(({ expr }) => expr));
  await withMixin(t, newDisks(t), async (cluster, prometheus) => {
    const names = new Set([...exprs, ...queries].flatMap(selectorsOf));
    assert.ok(names.size > 20, `${names.size} selectors`);
    await until(
      "each has a series",
      async () => {
        await callOnce(cluster);
        const found = await Promise.all([...names].map((name) => prometheus.query(name)));
        return found.every((series) => series.length > 0);
      },
      1000,
    ).catch(async (error: Error) => {
      const found = await Promise.all([...names].map((name) => prometheus.query(name)));
      throw new Error(`${error.message}: ${[...names].filter((_, i) => found[i].length === 0)}`);
    });
    for (const query of queries)
      await until(
        `an answer to ${query}`,
        async () => {
          await callOnce(cluster);
          const answer = await prometheus.query(query);
          return answer.length > 0 && answer.every(({ value }) => !Number.isNaN(value));
        },
        1000,
      );
    t.diagnostic(`${names.size} selectors, ${queries.length} queries of the dashboards`);
    // Those about latency depend on what else the machine has to do.
    const wrong = new Set(["etcdMembersDown", "etcdInsufficientMembers", "etcdNoLeader"]);
    wrong.add("etcdDatabaseQuotaLowSpace").add("etcdHighNumberOfFailedProposals");
    assert.deepEqual(
      (await prometheus.alerts()).filter(({ name }) => wrong.has(name)),
      [],
    );
  });
});

test("etcd's alerts hold when something is wrong", { skip }, async (t) => {
  const disks = newDisks(t);
  await withMixin(t, disks, async (cluster, prometheus) => {
    await t.test("slow disks: fsync and requests", async () => {
      for (const disk of disks.values()) disk.slow(1200);
      const writers = new Writers(cluster, 4);
      await untilAlerts(prometheus, ["etcdHighFsyncDurations", "etcdGRPCRequestsSlow"]);
      for (const disk of disks.values()) disk.slow(0);
      await writers.stop();
    });
    await t.test("a store that fills up: quota and growth", async () => {
      const writers = new Writers(cluster, 4, 128 * 1024);
      await untilAlerts(prometheus, ["etcdDatabaseQuotaLowSpace", "etcdExcessiveDatabaseGrowth"]);
      await writers.stop();
    });
    await t.test("members down: no leader, failed requests, failed proposals", async () => {
      const [first, second, third] = cluster.members;
      await Promise.all([first.kill(), second.kill()]);
      const client = new TestClient(third.clientAddress);
      let isOver = false;
      const puts = async (): Promise<void> => {
        while (!isOver)
          await client
            .call(KVService.methods.Put, { key: fromLatin1("key") }, 500)
            .catch(() => delay(5));
      };
      const all = Array.from({ length: 200 }, puts);
      await untilAlerts(prometheus, [
        "etcdInsufficientMembers",
        "etcdMembersDown",
        "etcdNoLeader",
        "etcdHighNumberOfFailedGRPCRequests",
      ]);
      isOver = true;
      await Promise.all(all);
      client.close();
      await until("a firing alert", async () =>
        (await prometheus.alerts()).some(
          ({ name, state }) => name === "etcdNoLeader" && state === "firing",
        ),
      );
    });
  });
});
