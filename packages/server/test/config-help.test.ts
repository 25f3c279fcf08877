import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { configurationDocs, helpText } from "../src/config/help.ts";
import { groups, optionByFlag, options, variableName } from "../src/config/options.ts";
import { retiredFlags } from "../src/config/retired.ts";
import { editDistance, nearest } from "../src/config/suggest.ts";

/**
 * The flags of etcd 3.7, as `etcd --help` lists them, without --version, --config-file and those
 * that it no longer defines.
 */
const etcdFlags =
  `name data-dir wal-dir snapshot-count heartbeat-interval election-timeout initial-election-tick-advance listen-peer-urls
listen-client-urls listen-client-http-urls max-wals memory-mlock quota-backend-bytes backend-bbolt-freelist-type backend-batch-interval
backend-batch-limit max-txn-ops max-request-bytes max-concurrent-streams grpc-keepalive-min-time grpc-keepalive-interval
grpc-keepalive-timeout socket-reuse-port socket-reuse-address enable-grpc-gateway raft-read-timeout raft-write-timeout feature-gates
initial-advertise-peer-urls initial-cluster initial-cluster-state initial-cluster-token advertise-client-urls discovery-token
discovery-endpoints discovery-dial-timeout discovery-request-timeout discovery-keepalive-time discovery-keepalive-timeout
discovery-insecure-transport discovery-insecure-skip-tls-verify discovery-cert discovery-key discovery-cacert discovery-user
discovery-password discovery-fallback discovery-srv discovery-srv-name strict-reconfig-check pre-vote auto-compaction-retention
auto-compaction-mode cert-file key-file client-cert-auth client-cert-file client-key-file client-crl-file client-cert-allowed-hostname
trusted-ca-file auto-tls peer-cert-file peer-key-file peer-client-cert-auth peer-client-cert-file peer-client-key-file
peer-trusted-ca-file peer-cert-allowed-cn peer-cert-allowed-hostname peer-auto-tls self-signed-cert-validity peer-crl-file cipher-suites
cors host-whitelist tls-min-version tls-max-version auth-token bcrypt-cost auth-token-ttl enable-pprof metrics listen-metrics-urls logger
log-outputs log-level log-format enable-log-rotation log-rotation-config-json warning-unary-request-duration enable-distributed-tracing
distributed-tracing-address distributed-tracing-service-name distributed-tracing-instance-id distributed-tracing-sampling-rate
corrupt-check-time compact-hash-check-time compaction-batch-limit peer-skip-client-san-verification watch-progress-notify-interval
warning-apply-duration bootstrap-defrag-threshold-megabytes max-learners compaction-sleep-interval downgrade-check-time
snapshot-catchup-entries force-new-cluster unsafe-no-fsync`.split(/\s+/);

test("every flag of etcd 3.7 is declared", () => {
  assert.deepEqual(
    etcdFlags.filter((flag) => optionByFlag.get(flag) !== flag),
    [],
  );
});

test("--help shows every option with its type, in its group, in at most 100 columns where text can be broken", () => {
  const help = helpText();
  for (const [name, option] of options)
    assert.match(help, new RegExp(`^  --${name} ${option.kind} +default: .`, "m"), name);
  for (const group of groups) assert.ok(help.includes(`\n${group}:\n`), group);
  const long = help.split("\n").filter((line) => line.startsWith("      ") && line.length > 100);
  assert.deepEqual(long, []);
});

test("--help shows the flags without effect too, each with the reason", () => {
  const help = helpText();
  for (const [name, { why }] of retiredFlags) {
    const at = help.indexOf(`\n  --${name}`);
    assert.ok(at > 0, name);
    const flat = help.slice(at).replaceAll(/\s+/g, " ").toLowerCase();
    assert.ok(flat.includes(why.toLowerCase()), name);
  }
});

test("docs/reference/configuration.md is what the declarations say", () => {
  const page = readFileSync(
    join(import.meta.dirname, "../../../docs/reference/configuration.md"),
    "utf8",
  );
  assert.equal(page, configurationDocs(), "run node scripts/gen-config-docs.ts");
  for (const name of options.keys())
    assert.ok(page.includes(`\`--${name}\`<br>\`${variableName(name)}\``), name);
});

test("the nearest name is found when it is near enough", () => {
  assert.equal(editDistance("", "abc"), 3);
  assert.equal(editDistance("abcd", "acbd"), 1);
  assert.equal(editDistance("kitten", "sitting"), 3);
  assert.equal(nearest("daat-dir", options.keys()), "data-dir");
  assert.equal(nearest("cert-fil", options.keys()), "cert-file");
  assert.equal(nearest("q", options.keys()), undefined);
});
