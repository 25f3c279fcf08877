/**
 * Prometheus beside a real cluster: its rules are good, the metrics that they and etcd's own rules
 * name are there, and alerts fire.
 * @slow
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { writeBackupMetrics } from "@quorate/backup/node";
import { prometheusExposition } from "@quorate/metrics/node";
import { OperatorMetrics } from "@quorate/operator";
import { parse } from "yaml";
import { withCluster } from "../support/cluster.ts";
import { dashboardQueries } from "../support/dashboard.ts";
import { get } from "../support/http.ts";
import { skipWithoutPrometheus, startPrometheus } from "../support/prometheus.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

const directory = join(import.meta.dirname, "../../deploy/prometheus");
const skip = skipWithoutPrometheus;

/** What the rules and the dashboard that etcd's project publishes look at. */
const ETCD_NAMES = [
  "etcd_disk_backend_commit_duration_seconds_bucket",
  "etcd_disk_wal_fsync_duration_seconds_bucket",
  "etcd_mvcc_db_total_size_in_bytes",
  "etcd_mvcc_db_total_size_in_use_in_bytes",
  "etcd_network_client_grpc_received_bytes_total",
  "etcd_network_client_grpc_sent_bytes_total",
  "etcd_network_peer_received_bytes_total",
  "etcd_network_peer_round_trip_time_seconds_bucket",
  "etcd_network_peer_sent_bytes_total",
  "etcd_network_peer_sent_failures_total",
  "etcd_server_has_leader",
  "etcd_server_leader_changes_seen_total",
  "etcd_server_proposals_applied_total",
  "etcd_server_proposals_committed_total",
  "etcd_server_proposals_failed_total",
  "etcd_server_proposals_pending",
  "etcd_server_quota_backend_bytes",
  "grpc_server_handled_total",
  "grpc_server_handling_seconds_bucket",
  "grpc_server_started_total",
  "process_resident_memory_bytes",
];

/** Exported by others: Prometheus itself, and the blackbox exporter. */
const NOT_OURS = new Set(["up", "probe_ssl_earliest_cert_expiry"]);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description?: string;
    readonly runbook_url?: string;
  };
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}

test("promtool has nothing against the rules and the configuration", { skip }, () => {
  for (const args of [
    ["rules", "alerts.yml"],
    ["rules", "etcd-names.yml"],
    ["config", "prometheus.yml"],
  ]) {
    const { status, stdout, stderr } = spawnSync("promtool", ["check", ...args], {
      cwd: directory,
      encoding: "utf8",
    });
    assert.equal(status, 0, `${stdout}${stderr}`);
  }
});

test("each alert leads to its entry in the runbook, and each entry has its alert", () => {
  const { groups } = parse(readFileSync(join(directory, "alerts.yml"), "utf8")) as Rules;
  const rules = groups.flatMap(({ rules: all }) => all);
  const runbook = readFileSync(join(directory, "../../docs/operate/runbook.md"), "utf8");
  for (const { alert, annotations, labels } of rules) {
    assert.equal(annotations.runbook_url, `docs/operate/runbook.md#${alert.toLowerCase()}`);
    assert.ok(annotations.summary !== "" && (annotations.description ?? "") !== "", alert);
    assert.ok(["warning", "critical"].includes(labels.severity), alert);
  }
  const titles = [...runbook.matchAll(/^### (Quorate\w+)$/gm)].map(({ 1: title }) => title);
  assert.deepEqual([...titles].sort(), rules.map(({ alert }) => alert).sort());
});

test("the dashboard's queries are PromQL", { skip }, (t) => {
  const dir = scratchDirectory("quorate-dashboard-", t);
  const queries = dashboardQueries();
  assert.ok(queries.length > 40, `${queries.length} queries`);
  const rules = queries.map((expr, i) => ({ record: `query_${i}`, expr }));
  writeFileSync(
    join(dir, "queries.yml"),
    JSON.stringify({ groups: [{ name: "dashboard", rules }] }),
  );
  const { status, stdout, stderr } = spawnSync(
    "promtool",
    ["check", "rules", join(dir, "queries.yml")],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, `${stdout}${stderr}`);
});

test("the rules fire on the series that they should, and on no others", { skip }, () => {
  const { status, stdout, stderr } = spawnSync(
    "promtool",
    ["test", "rules", join(import.meta.dirname, "prometheus-rules.yml")],
    {
      encoding: "utf8",
    },
  );
  assert.equal(status, 0, `${stdout}${stderr}`);
});

test("alerts fire when the quorum is lost, and not before; every metric that rules name is there", {
  skip,
}, async (t) => {
  const dir = scratchDirectory("quorate-prometheus-", t);
  const rules = parse(readFileSync(join(directory, "alerts.yml"), "utf8")) as Rules;
  await withCluster({ size: 3, flags: ["--metrics=extensive"] }, async (cluster) => {
    // None of them waits for something to happen first.
    const members = await Promise.all(
      cluster.members.map((member) => get(cluster, member, "/metrics")),
    );
    const ofBackup = join(dir, "backup.prom");
    const status = { revision: 1, recordedMs: 1, baseMs: 1 };
    await writeBackupMetrics(ofBackup, status, { passedMs: 1, uploadedBytes: 1 });
    const ofOperator = await prometheusExposition(new OperatorMetrics().registry).text();
    const exposed = [
      ...members.map(({ body }) => body),
      readFileSync(ofBackup, "utf8"),
      ofOperator,
    ].join("\n");
    const ours = rules.groups.flatMap(({ rules: all }) =>
      all.flatMap(({ expr }) => expr.match(/\b[a-z]+_[a-z0-9_]+(?=[{[ ])/g) ?? []),
    );
    for (const name of new Set([...ETCD_NAMES, ...ours])) {
      // Alarms, and metrics of TLS, are declared without a sample until there is one.
      if (!NOT_OURS.has(name))
        assert.ok(new RegExp(`^(?:# TYPE )?${name}[ {]`, "m").test(exposed), `no ${name}`);
    }

    // The same rules, without the patience that people want.
    for (const { rules: all } of rules.groups)
      for (const rule of all) if (rule.for !== undefined) rule.for = "2s";
    writeFileSync(join(dir, "alerts.yml"), JSON.stringify(rules));
    const prometheus = await startPrometheus({
      dir,
      job: "quorate-etcd",
      targets: cluster.members.map((member) => member.clientAddress),
      rules: ["alerts.yml"],
    });
    t.after(() => prometheus.close());
    const up = async () => (await prometheus.query("sum(up)"))[0]?.value ?? 0;
    const firing = async () =>
      new Set(
        (await prometheus.alerts())
          .filter(({ state }) => state === "firing")
          .map(({ name }) => name),
      );
    await until(
      "prometheus answers and all members are up",
      async () => (await up().catch(() => 0)) === 3,
    );
    // What a start brings with it, an election, is none of these; a first scrape that took long is
    // over.
    await until("none of three alerts fires", async () => {
      const names = await firing();
      return (
        !names.has("QuorateNoLeader") &&
        !names.has("QuorateQuorumLost") &&
        !names.has("QuorateMembersDown")
      );
    });

    await Promise.all(cluster.members.slice(0, 2).map((member) => member.kill()));
    await until("three alerts fire", async () => {
      const names = await firing();
      return (
        names.has("QuorateNoLeader") &&
        names.has("QuorateQuorumLost") &&
        names.has("QuorateMembersDown")
      );
    });

    for (const member of cluster.members.slice(0, 2)) member.start();
    await cluster.waitReady();
    await until("they end", async () => {
      const names = await firing();
      return (
        !names.has("QuorateNoLeader") &&
        !names.has("QuorateQuorumLost") &&
        !names.has("QuorateMembersDown")
      );
    });
  });
});
