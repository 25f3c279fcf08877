import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../src/config/load.ts";
import { options } from "../src/config/options.ts";
import type { Notice, ServerConfig } from "../src/config/server-config.ts";

const PEM = "-----BEGIN CERTIFICATE-----\n";

async function load(
  yaml: string,
  argv: string[] = [],
  env: Record<string, string> = {},
): Promise<{ config: ServerConfig; notices: readonly Notice[] }> {
  const files: Record<string, string> = { "q.yaml": yaml, c: PEM, k: PEM, ca: PEM };
  const readFile = (path: string): string => files[path] ?? assert.fail(`read ${path}`);
  const invocation = await loadConfig(["--config-file", "q.yaml", ...argv], env, readFile);
  assert.equal(invocation.kind, "run");
  return invocation as { kind: "run"; config: ServerConfig; notices: readonly Notice[] };
}

async function refused(yaml: string, message: RegExp): Promise<void> {
  await assert.rejects(load(yaml), (error: { code?: string; message: string }) => {
    assert.match(error.message, message);
    assert.notEqual(error.code, undefined);
    return true;
  });
}

test("a file in etcd's form configures the member", async () => {
  const { config } = await load(`
name: 'infra0'
data-dir: d
wal-dir:
snapshot-count: 500
heartbeat-interval: 50
election-timeout: 500
listen-peer-urls: https://127.0.0.1:3380
listen-client-urls: https://127.0.0.1:3379,http://127.0.0.1:3378
advertise-client-urls: https://127.0.0.1:3379
initial-advertise-peer-urls: https://127.0.0.1:3380
initial-cluster: "infra0=https://127.0.0.1:3380"
initial-cluster-token: t
initial-cluster-state: existing
strict-reconfig-check: yes
client-transport-security:
  cert-file: c
  key-file: k
  client-cert-auth: true
  trusted-ca-file: ca
  auto-tls: false
peer-transport-security: {cert-file: c, key-file: k, client-cert-auth: on, trusted-ca-file: ca, allowed-cn: [a, b],
  allowed-hostname: , skip-client-san-verification: true}
log-level: debug
log-outputs: [stdout]
cipher-suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]
auto-compaction-retention: "1"
feature-gates: LeaseCheckpoint=true
`);
  assert.equal(config.name, "infra0");
  assert.equal(config.walDir, "d/member/wal");
  assert.equal(config.snapshotCount, 500);
  assert.equal(config.isNewCluster, false);
  assert.equal(config.clientTls?.clientCertAuth, true);
  assert.deepEqual(config.peerTls?.allowedCommonNames, ["a", "b"]);
  assert.equal(config.peerTls?.clientCertAuth, true);
  assert.equal(config.peerTls?.skipClientSanVerify, true);
  assert.deepEqual(config.log.outputs, [{ kind: "stdout" }]);
  assert.deepEqual(config.autoCompaction, { mode: "periodic", retentionMs: 3_600_000 });
  assert.equal(config.featureGates.get("LeaseCheckpoint"), true);
});

test("every option can be set in the file, under the key that it declares", async () => {
  for (const [name, option] of options) {
    const keys = option.fileKey.split(".");
    const value =
      option.kind === "duration" || option.kind === "uint" || option.kind === "int"
        ? "oops"
        : option.kind === "bool"
          ? "maybe"
          : undefined;
    // A value that cannot be read shows that the key reached its option; texts and lists are read
    // as they are.
    const yaml =
      keys.map((key, depth) => `${"  ".repeat(depth)}${key}:`).join("\n") +
      (value === undefined ? "" : ` ${value}`);
    if (value === undefined) await load(yaml);
    else
      await refused(yaml, new RegExp(`^q.yaml: invalid value "${value}" for ${option.fileKey}: `));
    assert.notEqual(name, "");
  }
});

test("durations in the file are nanoseconds, as in etcd's, or Go's text", async () => {
  const { config } = await load("warning-apply-duration: 250000000\ngrpc-keepalive-timeout: 7s\n");
  assert.equal(config.warningApplyDurationMs, 250);
  assert.equal(config.grpcKeepalive.timeoutMs, 7000);
});

test("with a file, flags and variables are put aside and named in a warning", async () => {
  const { config, notices } = await load("name: a\n", ["--name=b", "--data-dir=x"], {
    ETCD_NAME: "c",
    HOME: "/",
  });
  assert.equal(config.name, "a");
  assert.equal(config.dataDir, "a.quorate");
  assert.equal(notices[0].level, "warn");
  assert.deepEqual(notices[0].fields, {
    path: "q.yaml",
    ignored: ["--name", "--data-dir", "ETCD_NAME"],
  });
  assert.equal((await load("name: a\n")).notices[0].level, "info");
});

test("the file can be named by a variable", async () => {
  const invocation = await loadConfig([], { ETCD_CONFIG_FILE: "f" }, () => "name: z\n");
  assert.equal(invocation.kind === "run" && invocation.config.name, "z");
});

test("unknown keys are refused with the nearest known one", async () => {
  await refused(
    "discovery-fallback: dance\n",
    /invalid value "dance".* must be one of exit, proxy/,
  );
  await refused("nmae: x\n", /^q.yaml: unknown key "nmae" \(did you mean "name"\?\)$/);
  await refused(
    "client-transport-security:\n  client-cert-auht: true\n",
    /unknown key "client-transport-security.client-cert-auht" \(did you mean "client-transport-security.client-cert-auth"\?\)/,
  );
  await refused("nosuchthing:\n", /unknown key "nosuchthing"/);
});

test("files that cannot be read say where", async () => {
  await refused("name: [\n", /^q.yaml: .*at line/s);
  await refused("a: 1\na: 2\n", /^q.yaml: duplicated mapping key at line 2$/);
  await refused("- a\n", /^q.yaml: expected keys with values$/);
  await refused("name: {a: 1}\n", /^q.yaml: invalid value .* for name: expected a single value$/);
  await refused(
    "peer-transport-security: x\n",
    /^q.yaml: invalid peer-transport-security: expected nested keys$/,
  );
  await refused("snapshot-count: 1.5\n", /expected a whole number/);
  await assert.rejects(
    loadConfig(["--config-file=nope"], {}, () => {
      throw new Error("no such file");
    }),
    { code: "BadFile", message: "cannot read the configuration file nope: no such file" },
  );
  assert.equal((await load("")).config.name, "default");
});

test("keys of earlier releases are accepted with a warning", async () => {
  const { config, notices } = await load(
    "v2-deprecation: gone\nproxy: 'off'\nexperimental-max-learners: 3\nexperimental-initial-corrupt-check: true\n",
  );
  assert.equal(config.maxLearners, 3);
  assert.equal(config.featureGates.get("InitialCorruptCheck"), true);
  const retired = notices
    .filter((notice) => notice.msg === "option has no effect")
    .map((notice) => notice.fields["option"]);
  assert.deepEqual(retired, ["v2-deprecation", "proxy"]);
});

test("a file without advertise-client-urls keeps etcd's default and says so", async () => {
  const { config, notices } = await load("listen-client-urls: http://127.0.0.1:5\n");
  assert.equal(config.advertiseClientUrls[0].text, "http://localhost:2379");
  assert.ok(
    notices.some((notice) =>
      /^advertise-client-urls is not in the configuration file/.test(notice.msg),
    ),
  );
});

// The keys and values of the sample that etcd 3.4 comes with; 3.6 refuses it for its fallback.
test("the keys of etcd 3.4's sample start a member; those without effect are named", async () => {
  const { config, notices } = await load(`
name: default
data-dir:
wal-dir:
snapshot-count: 10000
heartbeat-interval: 100
election-timeout: 1000
quota-backend-bytes: 0
listen-peer-urls: http://localhost:2380
listen-client-urls: http://localhost:2379
max-snapshots: 5
max-wals: 5
cors:
initial-advertise-peer-urls: http://localhost:2380
advertise-client-urls: http://localhost:2379
discovery:
discovery-fallback: 'proxy'
discovery-proxy:
discovery-srv:
initial-cluster:
initial-cluster-token: 'etcd-cluster'
initial-cluster-state: 'new'
strict-reconfig-check: false
enable-v2: true
enable-pprof: true
proxy: 'off'
proxy-failure-wait: 5000
proxy-refresh-interval: 30000
proxy-dial-timeout: 1000
proxy-write-timeout: 5000
proxy-read-timeout: 0
client-transport-security:
  cert-file:
  key-file:
  client-cert-auth: false
  trusted-ca-file:
  auto-tls: false
peer-transport-security:
  cert-file:
  key-file:
  client-cert-auth: false
  trusted-ca-file:
  auto-tls: false
debug: false
logger: zap
log-outputs: [stderr]
force-new-cluster: false
auto-compaction-mode: periodic
auto-compaction-retention: "1"
`);
  assert.equal(config.enableV2, true);
  assert.deepEqual([...config.initialCluster.keys()], ["default"]);
  const without = notices.filter(({ msg }) => msg === "option has no effect");
  assert.deepEqual(
    without.map(({ level, fields }) => `${level} ${fields["option"]}`).sort(),
    [
      "debug",
      "discovery-fallback",
      "enable-pprof",
      "max-snapshots",
      "proxy",
      "proxy-dial-timeout",
      "proxy-failure-wait",
      "proxy-read-timeout",
      "proxy-refresh-interval",
      "proxy-write-timeout",
    ].map((name) => `warn ${name}`),
  );
  assert.match(
    String(
      without.find(({ fields }) => fields["option"] === "discovery-fallback")?.fields["reason"],
    ),
    /ends the start.*proxy .*gone/,
  );
});
