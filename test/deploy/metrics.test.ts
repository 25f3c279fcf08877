/**
 * A member's metrics beside those of etcd 3.7: metrics/etcd-3.7.json has the names, types and
 * labels of all that its sources register, and metrics/missing.json those that a member here does
 * not have, with the reason. That list must shrink: a name that is there is an error in it. Where
 * an etcd is installed, a running one must have no metric that the list does not know.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { request } from "undici";
import { parse } from "yaml";
import { withCluster } from "../support/cluster.ts";
import { dashboardQueries } from "../support/dashboard.ts";
import { findProgram } from "../support/executables.ts";
import { get } from "../support/http.ts";
import { freePorts } from "../support/ports.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

/**
 * Of Prometheus' blackbox exporter, and of Go's runtime, which the dashboard takes where the member
 * is etcd's.
 */
const NOT_OURS = /^(?:probe|go)_/;

interface Metric {
  readonly type: string;
  readonly labels: readonly string[];
}

const read = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, "metrics", name), "utf8")) as unknown;
const ETCD = read("etcd-3.7.json") as Record<string, Metric>;
const MISSING = read("missing.json") as Record<string, string>;
/**
 * Registered without a series until something happens; declared all the same, so that their type is
 * known.
 */
const EMPTY_AT_FIRST = new Set([
  "etcd_debugging_server_alarms",
  "etcd_network_snapshot_receive_total_duration_seconds",
  "etcd_network_snapshot_send_total_duration_seconds",
  "etcd_server_client_requests_total",
  "etcd_server_learner_promote_failures",
]);

/**
 * What an exposition declares, with the labels of its first sample (undefined where there is none).
 */
function metricsOf(
  exposition: string,
): Map<string, { type: string; labels: readonly string[] | undefined }> {
  const found = new Map<string, { type: string; labels: readonly string[] | undefined }>();
  for (const [, name, type] of exposition.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const sample = new RegExp(
      `^${name}${type === "histogram" ? "_count" : ""}(?:\\{(.*)\\})? `,
      "m",
    ).exec(exposition);
    const labels =
      sample === null
        ? undefined
        : [...(sample[1] ?? "").matchAll(/(\w+)="/g)].map((match) => match[1]);
    found.set(name, { type: type, labels });
  }
  return found;
}

/** Every metric in the dashboard's queries and in the rules, with the place where it is. */
function namesThatAreAskedFor(): Map<string, string> {
  const queries: (readonly [expr: string, place: string])[] = dashboardQueries().map((expr) => [
    expr,
    "the dashboard",
  ]);
  for (const file of ["alerts.yml", "etcd-names.yml"]) {
    const { groups } = parse(
      readFileSync(join(import.meta.dirname, "../../deploy/prometheus", file), "utf8"),
    ) as {
      groups: { rules: { expr: string }[] }[];
    };
    for (const { rules } of groups) for (const { expr } of rules) queries.push([expr, file]);
  }
  const names = new Map<string, string>();
  for (const [expr, place] of queries) {
    for (const [name] of expr.matchAll(/\b[a-z]+_[a-z0-9_]+(?=\{)/g))
      if (!NOT_OURS.test(name)) names.set(name, place);
  }
  assert.ok(names.size > 40, `${names.size} names`);
  return names;
}

test("a member has etcd's metrics by name, type and labels, but for those that are listed as missing", async () => {
  await withCluster({ size: 2, flags: ["--metrics=extensive"] }, async (cluster) => {
    const [member] = cluster.members;
    await get(cluster, member, "/health");
    await get(cluster, member, "/readyz");
    const ours = metricsOf((await get(cluster, member, "/metrics")).body);
    const problems: string[] = [];
    for (const [name, { type, labels }] of Object.entries(ETCD)) {
      const own = ours.get(name);
      if (own === undefined) {
        if (MISSING[name] === undefined)
          problems.push(`${name} is not there, and missing.json does not say why`);
        continue;
      }
      if (MISSING[name] !== undefined)
        problems.push(`${name} is there: take it out of missing.json`);
      if (own.type !== type) problems.push(`${name} is a ${own.type}, in etcd a ${type}`);
      if (own.labels === undefined) {
        if (!EMPTY_AT_FIRST.has(name)) problems.push(`${name} has no series`);
      } else if ([...own.labels].sort().join() !== [...labels].sort().join()) {
        problems.push(`${name} has labels ${own.labels.join()}, in etcd ${labels.join()}`);
      }
    }
    for (const [name, place] of namesThatAreAskedFor()) {
      const base = ours.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, "");
      if (!ours.has(base)) problems.push(`${place} asks for ${name}`);
    }
    for (const name of Object.keys(MISSING))
      if (ETCD[name] === undefined) problems.push(`missing.json: etcd has no ${name}`);
    assert.deepEqual(problems, []);
  });
});

const etcd = findProgram("etcd");

test("an installed etcd has no metric that the list does not know", {
  skip: etcd === undefined ? "etcd is not installed (Debian: apt-get install etcd-server)" : false,
}, async (t) => {
  const dir = scratchDirectory("quorate-etcd-metrics-", t);
  const [clientPort, peerPort] = await freePorts(2);
  const [clientUrl, peerUrl] = [clientPort, peerPort].map((port) => `http://127.0.0.1:${port}`);
  const args = [
    `--data-dir=${dir}/data`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    "--metrics=extensive",
  ];
  const running = spawn(etcd!, args, { stdio: "ignore" });
  const gone = new Promise((resolve) => running.once("exit", resolve));
  t.after(async () => {
    running.kill("SIGKILL");
    await gone;
  });
  let exposition = "";
  await until("etcd answers", async () => {
    const { statusCode, body } = await request(`${clientUrl}/metrics`).catch(() => ({
      statusCode: 0,
      body: undefined,
    }));
    exposition = (await body?.text()) ?? "";
    return statusCode === 200 && /^etcd_server_has_leader 1$/m.test(exposition);
  });
  const theirs = metricsOf(exposition);
  const version = /etcd_server_version\{server_version="([^"]*)"/.exec(exposition)?.[1] ?? "";
  // Those that a release before 3.7 had and 3.7 has not.
  const retired =
    /^etcd_(?:debugging_(?:snap|store)_|snap_|server_go_version)|^etcd_debugging_mvcc_(?:put|delete|txn|range|db_total)/;
  const unknown = [...theirs].filter(
    ([name]) =>
      ETCD[name] === undefined &&
      !name.startsWith("go_") &&
      !(!version.startsWith("3.7") && retired.test(name)),
  );
  assert.deepEqual(
    unknown.map(([name]) => name),
    [],
    `etcd ${version}`,
  );
  for (const [name, { type, labels }] of theirs) {
    const known = ETCD[name];
    if (known === undefined || labels === undefined) continue;
    assert.equal(type, known.type, name);
    assert.deepEqual([...labels].sort(), [...known.labels].sort(), name);
  }
});
