import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../src/config/load.ts";
import { options, variableName } from "../src/config/options.ts";
import type { Notice } from "../src/config/server-config.ts";
import { startFields } from "../src/config/start-fields.ts";
import { type Run, reader, refused, run } from "./support/config.ts";

const PEM = "-----BEGIN CERTIFICATE-----\n";

const warned = ({ notices }: Run, option: string): Notice | undefined =>
  notices.find((notice) => notice.fields["option"] === option);
const texts = (urls: readonly { text: string }[]): string[] => urls.map((url) => url.text);

test("without any flag it is one member named default on localhost", async () => {
  const { config, notices } = await run([]);
  assert.equal(config.name, "default");
  assert.equal(config.dataDir, "default.quorate");
  assert.equal(config.walDir, "default.quorate/member/wal");
  assert.equal(config.snapDir, "default.quorate/member/snap");
  assert.equal(config.storeDir, "default.quorate/member/store");
  assert.deepEqual(texts(config.listenClientUrls), ["http://localhost:2379"]);
  assert.deepEqual(texts(config.listenPeerUrls), ["http://localhost:2380"]);
  assert.deepEqual(texts(config.advertiseClientUrls), ["http://localhost:2379"]);
  assert.deepEqual(texts(config.initialCluster.get("default")!), ["http://localhost:2380"]);
  assert.equal(config.initialClusterToken, "etcd-cluster");
  assert.equal(config.isNewCluster, true);
  assert.equal(config.electionTicks, 10);
  assert.equal(config.snapshotCount, 10_000);
  assert.equal(config.snapshotCatchUpEntries, 5000);
  assert.equal(config.maxRequestBytes, 1_572_864);
  assert.equal(config.maxTxnOps, 128);
  assert.equal(config.quotaBackendBytes, 2 * 1024 ** 3);
  assert.deepEqual(config.autoCompaction, { mode: "off" });
  assert.deepEqual(config.log, {
    level: "info",
    format: "auto",
    outputs: [{ kind: "stderr" }],
    rotation: undefined,
  });
  assert.equal(config.clientTls, undefined);
  // Only the two notes about defaults; nothing that is at its default is warned of.
  assert.deepEqual(
    notices.map((notice) => notice.fields),
    [{ name: "default" }, { "data-dir": "default.quorate" }],
  );
});

test("the cluster's own command line is understood", async () => {
  const argv = [
    ["--name", "infra1"],
    ["--data-dir", "d"],
    ["--listen-client-urls", "https://127.0.0.1:4379"],
    ["--advertise-client-urls", "https://127.0.0.1:4379"],
    ["--listen-peer-urls", "https://127.0.0.1:4380"],
    ["--initial-advertise-peer-urls", "https://127.0.0.1:4380"],
    [
      "--initial-cluster",
      "infra0=https://127.0.0.1:3380,infra1=https://127.0.0.1:4380,infra2=https://127.0.0.1:5380",
    ],
    ["--initial-cluster-token", "etcd-cluster-1"],
    ["--initial-cluster-state", "new"],
    ["--cert-file", "server.pem"],
    ["--key-file", "server-key.pem"],
    ["--trusted-ca-file", "ca.pem"],
    ["--client-cert-auth"],
    ["--peer-cert-file", "peer.pem"],
    ["--peer-key-file", "peer-key.pem"],
    ["--peer-trusted-ca-file", "ca.pem"],
    ["--peer-client-cert-auth"],
  ].flat();
  const files = {
    "server.pem": PEM,
    "server-key.pem": PEM,
    "ca.pem": PEM,
    "peer.pem": PEM,
    "peer-key.pem": PEM,
  };
  const { config, notices } = await run(argv, {}, files);
  assert.deepEqual(notices, []);
  assert.deepEqual([...config.initialCluster.keys()], ["infra0", "infra1", "infra2"]);
  assert.deepEqual(config.clientTls, {
    certFile: "server.pem",
    keyFile: "server-key.pem",
    clientCertFile: "",
    clientKeyFile: "",
    trustedCaFile: "ca.pem",
    crlFile: "",
    requireClientCert: true,
    clientCertAuth: true,
    allowedCommonNames: [],
    allowedHostnames: [],
    skipClientSanVerify: false,
    ciphers: undefined,
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    serverName: "",
    selfCert: undefined,
  });
  assert.equal(config.peerTls?.certFile, "peer.pem");
});

test("flags come with one dash or two, with = or a space, and the last one wins", async () => {
  const { config } = await run([
    "-name",
    "a",
    "--name=b",
    "-name=c=d",
    "--pre-vote=false",
    "-client-cert-auth",
    "--data-dir",
    "-x",
    "--",
  ]);
  assert.equal(config.name, "c=d");
  assert.equal(config.preVote, false);
  assert.equal(config.dataDir, "-x");
});

test("a boolean does not take the next argument", async () => {
  await refused("BadFlag", '"false" is not a valid flag', ["--pre-vote", "false"]);
});

test("command lines that cannot be read end with code 2 and name the flag", async () => {
  await refused(
    "BadFlag",
    "flag provided but not defined: --listen-client-url (did you mean --listen-client-urls?)",
    ["--listen-client-url", "x"],
  );
  await refused(
    "BadFlag",
    "flag provided but not defined: --initial-clutser (did you mean --initial-cluster?)",
    ["-initial-clutser=x"],
  );
  await refused("BadFlag", "flag provided but not defined: --zzzzzzzzz", ["--zzzzzzzzz"]);
  await refused("BadFlag", "flag needs an argument: --name", ["--name"]);
  await refused("BadFlag", '"serve" is not a valid flag', ["serve"]);
  await refused("BadFlag", '"serve" is not a valid flag', ["--", "serve"]);
  await refused("BadFlag", '"-" is not a valid flag', ["-"]);
  await refused("BadFlag", "bad flag syntax: ---name=x", ["---name=x"]);
  await refused("BadFlag", "bad flag syntax: --=x", ["--=x"]);
  await assert.rejects(loadConfig(["--nosuch"], {}, reader({})), { exitCode: 2 });
  await assert.rejects(loadConfig(["--snapshot-count=x"], {}, reader({})), { exitCode: 2 });
  await assert.rejects(loadConfig(["--name="], {}, reader({})), { exitCode: 1 });
  await assert.rejects(loadConfig([], { ETCD_SNAPSHOT_COUNT: "x" }, reader({})), { exitCode: 1 });
});

test("values that cannot be read name the flag and the value", async () => {
  await refused(
    "BadValue",
    'invalid value "x" for flag --snapshot-count: parse error (expected a whole number; unit: entries)',
    ["--snapshot-count", "x"],
  );
  await refused(
    "BadValue",
    'invalid value "-1" for flag --snapshot-count: parse error (expected a whole number; unit: entries)',
    ["--snapshot-count", "-1"],
  );
  await refused(
    "BadValue",
    'invalid value "maybe" for flag --pre-vote: parse error (expected true or false)',
    ["--pre-vote=maybe"],
  );
  await refused(
    "BadValue",
    'invalid value "5" for flag --grpc-keepalive-timeout: time: missing unit in duration "5" (expected one such as 300ms, 10s or 1h30m)',
    ["--grpc-keepalive-timeout=5"],
  );
  await refused(
    "BadValue",
    'invalid value "4294967296" for flag --max-concurrent-streams: value out of range (expected 0 to 4294967295)',
    ["--max-concurrent-streams=4294967296"],
  );
  await refused(
    "BadValue",
    'invalid value "old" for flag --initial-cluster-state: must be one of new, existing',
    ["--initial-cluster-state=old"],
  );
  await refused(
    "BadValue",
    'invalid value "1.1" for flag --tls-min-version: must be one of "", TLS1.2, TLS1.3',
    ["--tls-min-version=1.1"],
  );
  await refused("BadValue", /URL must not contain a path/, [
    "--listen-peer-urls",
    "http://localhost:2380/x",
  ]);
  await refused(
    "BadValue",
    'invalid value "x" for ETCD_SNAPSHOT_COUNT: parse error (expected a whole number; unit: entries)',
    [],
    {
      ETCD_SNAPSHOT_COUNT: "x",
    },
  );
});

test("--help and --version come before everything else", async () => {
  for (const argv of [["-h"], ["--help"], ["--name", "x", "-help", "--nosuch"]]) {
    assert.equal((await loadConfig(argv, {}, reader({}))).kind, "help");
  }
  assert.equal((await loadConfig(["--version"], {}, reader({}))).kind, "version");
  assert.equal((await loadConfig(["--version=false"], {}, reader({}))).kind, "run");
});

test("front-end threads are a number within its bound, or auto", async () => {
  const of = async (text: string) =>
    (await run(["--frontend-threads", text])).config.frontendThreads;
  assert.deepEqual([await of("0"), await of("64"), await of("auto")], [0, 64, "auto"]);
  for (const text of ["65", "-1", "1.5", "many"])
    await refused("BadValue", /must be auto, or a number from 0 to 64/, [
      `--frontend-threads=${text}`,
    ]);
});

test("every option has its variable, and flags and variables give the same", async () => {
  for (const [name, option] of options) {
    if (option.stage.kind === "refused") continue;
    const text = sample(name, option.kind, option.defaultText);
    const argv = extra(name);
    const byFlag = await run([`--${name}=${text}`, ...argv], {}, { x: PEM });
    const byVariable = await run(argv, { [variableName(name)]: text }, { x: PEM });
    assert.deepEqual(byVariable.config, byFlag.config, name);
    // An effective option changes what the member is started with; "logger" has one value only, TLS
    // options need a certificate to count.
    if (
      option.stage.kind !== "effective" ||
      argv.length > 0 ||
      option.group === "Security" ||
      text === option.defaultText
    )
      continue;
    // What is alone without effect: what it is read with is at its default.
    const silent = [
      "initial-cluster",
      "feature-gates",
      "auto-compaction-mode",
      "discovery-srv-name",
      "log-rotation-config-json",
    ];
    if (!silent.includes(name)) assert.notDeepEqual(byFlag.config, (await run([])).config, name);
  }
});

/** A value other than the default that passes the checks. */
function sample(name: string, kind: string, defaultText: string): string {
  const special: Record<string, string> = {
    "initial-cluster": "default=http://localhost:2380",
    "initial-cluster-state": "existing",
    "election-timeout": "2000",
    "frontend-threads": "3",
    "discovery-fallback": "exit",
    "auto-compaction-mode": "revision",
    "auto-compaction-retention": "5m",
    "tls-min-version": "TLS1.3",
    "tls-max-version": "TLS1.3",
    "cipher-suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    cors: "http://a.example",
    metrics: "extensive",
    logger: "zap",
    "log-outputs": "stdout",
    "log-level": "warn",
    "log-format": "console",
    "enable-log-rotation": "false",
    "log-rotation-config-json": "{}",
    "feature-gates": "LeaseCheckpoint=true",
    "trusted-proxies": "127.0.0.1,CN=proxy",
    "heartbeat-interval": "50",
    "auth-token": "jwt,sign-method=RS256,pub-key=x",
    "audit-level": "request",
    "audit-on-failure": "refuse",
    "listen-metrics-urls": "http://127.0.0.1:9",
    "listen-client-http-urls": "http://127.0.0.1:9",
  };
  const byKind: Record<string, string> = {
    bool: String(defaultText === "false"),
    uint: "7",
    int: "7",
    duration: "7s",
    urls: "http://127.0.0.1:7",
  };
  return special[name] ?? byKind[kind] ?? "x";
}

function extra(name: string): string[] {
  const partners: Record<string, string[]> = {
    "listen-client-urls": ["--advertise-client-urls=http://a:1"],
    "cert-file": ["--key-file=x"],
    "key-file": ["--cert-file=x"],
    "client-cert-file": ["--cert-file=x", "--key-file=x", "--client-key-file=x"],
    "client-key-file": ["--cert-file=x", "--key-file=x", "--client-cert-file=x"],
    "peer-cert-file": ["--peer-key-file=x"],
    "peer-key-file": ["--peer-cert-file=x"],
    "peer-client-cert-file": [
      "--peer-cert-file=x",
      "--peer-key-file=x",
      "--peer-client-key-file=x",
    ],
    "peer-client-key-file": [
      "--peer-cert-file=x",
      "--peer-key-file=x",
      "--peer-client-cert-file=x",
    ],
  };
  const token = ["--discovery-token=t"];
  const service = ["--discovery-endpoints=a:1"];
  const discovery: Record<string, string[]> = {
    "discovery-endpoints": token,
    "discovery-token": service,
    "discovery-cert": [...service, ...token, "--discovery-key=x"],
    "discovery-key": [...service, ...token, "--discovery-cert=x"],
    "discovery-user": [...service, ...token, "--discovery-password=x"],
    "discovery-password": [...service, ...token, "--discovery-user=x"],
  };
  if (name.startsWith("discovery-") && !name.includes("srv") && name !== "discovery-fallback")
    return discovery[name] ?? [...service, ...token];
  if (name.startsWith("auth-jwt-")) return ["--auth-token=jwt,sign-method=RS256,pub-key=x"];
  if (name.startsWith("audit-") && name !== "audit-log") return ["--audit-log=x"];
  return partners[name] ?? [];
}

test("a variable beside its flag is refused, an unknown one is warned of, an empty one is absent", async () => {
  await refused(
    "Contradiction",
    /conflicting environment variable "ETCD_NAME" is shadowed/,
    ["--name=x"],
    { ETCD_NAME: "y" },
  );
  const result = await run([], {
    ETCD_NAEM: "x",
    ETCD_NAME: "",
    ETCD_UNSUPPORTED_ARCH: "arm64",
    ETCD_VERIFY: "all",
    OTHER: "x",
  });
  assert.equal(result.config.name, "default");
  const unknown = result.notices.filter(
    (notice) => notice.msg === "unrecognized environment variable",
  );
  assert.deepEqual(
    unknown.map((notice) => notice.fields),
    [{ "environment-variable": "ETCD_NAEM", nearest: "ETCD_NAME" }],
  );
});

test("a password in a variable does not reach the log", async () => {
  const { notices } = await run([], { ETCD_DISCOVERY_PASSWORD: "hunter2" });
  assert.equal(JSON.stringify(notices).includes("hunter2"), false);
});

test("old names still work and are warned of", async () => {
  const result = await run([
    "--experimental-warning-apply-duration=7s",
    "--experimental-initial-corrupt-check",
  ]);
  assert.equal(result.config.warningApplyDurationMs, 7000);
  assert.equal(result.config.featureGates.get("InitialCorruptCheck"), true);
  const renamed = result.notices.filter(
    (notice) => notice.msg === "an option was given under an old name",
  );
  assert.equal(renamed.length, 2);
  assert.deepEqual(renamed[0].fields, {
    "old-name": "experimental-warning-apply-duration",
    name: "warning-apply-duration",
  });
});

test("retired flags and those without a feature are accepted with the reason, those at their default in silence", async () => {
  const result = await run([
    "--v2-deprecation=not-yet",
    "--max-snapshots=5",
    "--memory-mlock",
    "--enable-pprof=false",
  ]);
  for (const name of ["v2-deprecation", "max-snapshots", "memory-mlock"])
    assert.ok(warned(result, name)?.fields["reason"], name);
  assert.equal(warned(result, "enable-pprof"), undefined);
});

test("what may not be ignored is refused until it is there", async () => {
  await refused("NotAvailable", /^--discovery cannot be used: /, [
    "--discovery=http://discovery.example/token",
  ]);
});

test("origins and hosts of HTTP requests are all, or those of a list", async () => {
  for (const flag of ["--cors=", "--cors=*", "--host-whitelist=", "--host-whitelist=*,a"]) {
    const { http } = (await run([flag])).config;
    assert.deepEqual([http.allowedOrigins, http.allowedHosts], [undefined, undefined], flag);
  }
  const flags = ["--cors=https://A.example,http://b.example:8080", "--enable-grpc-gateway=false"];
  const { http } = (await run(flags, { ETCD_HOST_WHITELIST: "DB.example,db2" })).config;
  assert.deepEqual([...http.allowedOrigins!], ["http://b.example:8080", "https://a.example"]);
  assert.deepEqual([...http.allowedHosts!], ["db.example", "db2"]);
  assert.equal(http.isGatewayOn, false);
  for (const origin of ["*,https://a.example", "a.example", "https://a.example/path"])
    await refused("BadValue", /for flag -cors: ".*" is no origin/, [`--cors=${origin}`]);
});

test("the console is off by default, and needs the gateway", async () => {
  assert.equal((await run([])).config.http.isConsoleOn, false);
  assert.equal((await run(["--console"])).config.http.isConsoleOn, true);
  const flags = ["--console", "--enable-grpc-gateway=false"];
  await refused("Contradiction", /^--console needs --enable-grpc-gateway/, flags);
});

test("a revocation list is in DER, as etcd takes it, or in PEM", async () => {
  const urls = [
    "--listen-client-urls=https://127.0.0.1:1",
    "--advertise-client-urls=https://127.0.0.1:1",
  ];
  const flags = [
    ...urls,
    "--cert-file=c",
    "--key-file=k",
    "--trusted-ca-file=ca",
    "--client-crl-file=crl",
  ];
  const files = { c: PEM, k: PEM, ca: PEM };
  const taken = async (crl: string) =>
    (await run(flags, {}, { ...files, crl })).config.clientTls?.crlFile;
  assert.equal(await taken("0\ufffd\u0001"), "crl");
  assert.equal(await taken("-----BEGIN X509 CRL-----\n"), "crl");
  await assert.rejects(
    taken(PEM),
    /--client-crl-file: crl is no revocation list, neither in DER nor in PEM/,
  );
});

test("certificates that a member makes for itself: where they are, which hosts they are for, and what they do not go with", async () => {
  const urls = [
    "--listen-client-urls=https://127.0.0.1:1,https://[::1]:1",
    "--advertise-client-urls=https://127.0.0.1:1",
  ];
  const { clientTls, peerTls } = (
    await run(["--auto-tls", "--data-dir=/d", "--self-signed-cert-validity=3", ...urls])
  ).config;
  assert.deepEqual(clientTls?.selfCert, {
    dir: "/d/fixtures/client",
    certFile: "/d/fixtures/client/cert.pem",
    keyFile: "/d/fixtures/client/key.pem",
    hosts: ["127.0.0.1", "::1"],
    validityYears: 3,
  });
  assert.deepEqual(
    [clientTls.certFile, clientTls.requireClientCert, clientTls.minVersion],
    [clientTls.selfCert.certFile, false, "TLSv1.2"],
  );
  assert.equal(peerTls, undefined);
  const peer = (await run(["--peer-auto-tls", "--data-dir=/d"])).config.peerTls!;
  assert.deepEqual([peer.selfCert?.dir, peer.selfCert?.hosts], ["/d/fixtures/peer", ["localhost"]]);
  const given = await run(["--auto-tls", "--cert-file=c", "--key-file=k"]);
  assert.ok(
    given.notices.some((notice) => notice.msg === "ignoring client auto TLS since certs given"),
  );
  assert.equal(given.config.clientTls?.selfCert, undefined);
  for (const [flags, other] of [
    [["--auto-tls", "--client-cert-auth"], "client-cert-auth"],
    [["--peer-auto-tls", "--peer-trusted-ca-file=ca"], "peer-trusted-ca-file"],
    [["--auto-tls", "--client-crl-file=crl"], "client-crl-file"],
  ] as const) {
    await refused(
      "Contradiction",
      new RegExp(`auto-tls cannot be used with --${other}: no authority stands behind`),
      [...flags],
    );
  }
  await refused("BadValue", "selfSignedCertValidity is invalid,it should be greater than 0", [
    "--auto-tls",
    "--self-signed-cert-validity=0",
  ]);
});

test("members that SRV records name carry the domain in their certificates, where the system's authorities vouch for them", async () => {
  const tls = [
    "--listen-peer-urls=https://127.0.0.1:1",
    "--initial-advertise-peer-urls=https://127.0.0.1:1",
  ];
  const pair = ["--peer-cert-file=c", "--peer-key-file=k"];
  const files = { c: PEM, k: PEM, ca: PEM };
  const nameOf = async (flags: string[]) =>
    (await run([...tls, ...pair, ...flags], {}, files)).config.peerTls?.serverName;
  assert.equal(await nameOf(["--discovery-srv=example.org"]), "example.org");
  assert.equal(await nameOf(["--discovery-srv=example.org", "--peer-trusted-ca-file=ca"]), "");
  assert.equal(await nameOf([]), "");
});

test("timing contradictions are refused with etcd's words", async () => {
  await refused("Contradiction", "--heartbeat-interval must be >0 (set to 0ms)", [
    "--heartbeat-interval=0",
  ]);
  await refused("Contradiction", "--election-timeout must be >0 (set to 0ms)", [
    "--election-timeout=0",
  ]);
  await refused(
    "Contradiction",
    "--election-timeout[499ms] should be at least as 5 times as --heartbeat-interval[100ms]",
    ["--election-timeout=499"],
  );
  await refused(
    "Contradiction",
    "--election-timeout[50001ms] is too long, and should be set less than 50000ms",
    ["--election-timeout=50001"],
  );
  assert.equal(
    (await run(["--election-timeout=50000", "--heartbeat-interval=300"])).config.electionTicks,
    166,
  );
});

test("address contradictions are refused", async () => {
  const advertise = "--advertise-client-urls=http://a:1";
  await refused(
    "Contradiction",
    "--listen-client-urls: expected IP in URL for binding (http://foo:1)",
    ["--listen-client-urls=http://foo:1", advertise],
  );
  await refused(
    "Contradiction",
    "--advertise-client-urls is required when --listen-client-urls is set explicitly",
    ["--listen-client-urls=http://1.1.1.1:1"],
  );
  await refused(
    "Contradiction",
    '--initial-advertise-peer-urls "http://:1" must be "host:port" (unexpected empty host (http://:1))',
    ["--initial-advertise-peer-urls=http://:1"],
  );
  await refused("Contradiction", /^--advertise-client-urls "http:\/\/:1" must be in the format/, [
    "--advertise-client-urls=http://:1",
  ]);
  await refused(
    "Contradiction",
    "--listen-client-urls and --listen-peer-urls both want to listen on http://localhost:2380: give one of them another port",
    ["--listen-client-urls=http://localhost:2380", advertise],
  );
  await refused("Contradiction", "--listen-peer-urls must not be empty", ["--listen-peer-urls="]);
  await refused("Contradiction", "--name must not be empty", ["--name="]);
  await refused("Contradiction", /cannot stand in the name of a data directory/, ["--name=a/b"]);
});

test("ways to form a cluster exclude each other", async () => {
  await refused("Contradiction", /^multiple discovery or bootstrap flags are set/, [
    "--initial-cluster=default=http://a:1",
    "--discovery-srv=x",
  ]);
  await refused("Contradiction", "both --discovery-token and --discovery-endpoints must be set", [
    "--discovery-token=x",
  ]);
  await refused(
    "BadValue",
    /^error setting up initial cluster: --initial-cluster: "default" is not of the form NAME=PEER-URL$/,
    ["--initial-cluster=default"],
  );
});

test("what a member says of its settings when it starts has etcd's names and no secret", async () => {
  const { config } = await run([
    "--name=a",
    "--snapshot-catchup-entries=1000",
    "--auto-compaction-mode=periodic",
    "--auto-compaction-retention=8h",
    "--quota-backend-bytes=-1",
    "--feature-gates=LeaseCheckpoint=true",
    "--corrupt-check-time=1m",
  ]);
  const fields = startFields(config);
  for (const [name, value] of [
    ["name", "a"],
    ["data-dir", "a.quorate"],
    ["snapshot-catchup-entries", 1000],
    ["heartbeat-interval", "100ms"],
    ["election-timeout", "1s"],
    ["initial-cluster", "a=http://localhost:2380"],
    ["initial-cluster-state", "new"],
    ["quota-backend-bytes", "no limit"],
    ["auto-compaction-mode", "periodic"],
    ["auto-compaction-retention", "8h0m0s"],
    ["corrupt-check-time-interval", "1m0s"],
  ] as const) {
    assert.equal(fields[name], value, name);
  }
  assert.deepEqual(fields["listen-client-urls"], ["http://localhost:2379"]);
  assert.ok((fields["feature-gates"] as string[]).includes("LeaseCheckpoint"));
  assert.doesNotMatch(JSON.stringify(fields), /key-file|password|auth-token/);
});

test("TLS settings are checked before the member starts", async () => {
  const https = ["--listen-client-urls=https://127.0.0.1:1", "--advertise-client-urls=https://a:1"];
  const files = { c: PEM, k: PEM, ca: PEM, junk: "junk" };
  const pair = ["--cert-file=c", "--key-file=k"];
  await refused(
    "Contradiction",
    /^TLS key\/cert \(--cert-file, --key-file\) must be provided for client url https:\/\/127.0.0.1:1/,
    https,
  );
  await refused(
    "Contradiction",
    "client TLS key/cert (--cert-file, --key-file) must be provided for metrics secure url https://127.0.0.1:3",
    ["--listen-metrics-urls=https://127.0.0.1:3"],
  );
  await refused(
    "Contradiction",
    "KeyFile and CertFile must both be present[key: , cert: c]: give both --cert-file and --key-file",
    [...https, "--cert-file=c"],
  );
  await refused("BadFile", "--cert-file: cannot read c: no such file", [...https, ...pair]);
  await refused(
    "BadFile",
    "--trusted-ca-file: junk is not a PEM file",
    [...https, ...pair, "--trusted-ca-file=junk"],
    {},
    files,
  );
  await refused(
    "BadFile",
    "--client-crl-file: cannot read crl: no such file",
    [...https, ...pair, "--client-crl-file=crl"],
    {},
    files,
  );
  await refused("Contradiction", /^AllowedCNs and AllowedHostnames are mutually exclusive/, [
    "--peer-cert-file=c",
    "--peer-key-file=k",
    "--peer-cert-allowed-cn=a",
    "--peer-cert-allowed-hostname=b",
  ]);
  await refused(
    "BadValue",
    'unexpected TLS cipher suite "NOPE"',
    [...https, ...pair, "--cipher-suites=NOPE"],
    {},
    files,
  );
  await refused("Contradiction", "cipher suites cannot be configured when only TLS1.3 is enabled", [
    "--tls-min-version=TLS1.3",
    "--cipher-suites=TLS_AES_128_GCM_SHA256",
  ]);
  await refused("Contradiction", "min version (TLS1.3) is greater than max version (TLS1.2)", [
    "--tls-min-version=TLS1.3",
    "--tls-max-version=TLS1.2",
  ]);
  const { config } = await run(
    [
      ...https,
      ...pair,
      "--trusted-ca-file=ca",
      "--cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    ],
    {},
    files,
  );
  assert.equal(config.clientTls?.requireClientCert, true);
  assert.match(config.clientTls?.ciphers ?? "", /:ECDHE-RSA-AES128-GCM-SHA256$/);
  // Certificates beside a plain URL are ignored with a warning, as etcd does, and not even read.
  const plain = await run([...pair, "--client-cert-auth"]);
  assert.equal(
    plain.notices.filter((notice) => /^scheme is HTTP while/.test(notice.msg)).length,
    2,
  );
});

test("compaction retention is a time in one mode and a number in the other", async () => {
  const retention = async (...argv: string[]) => (await run(argv)).config.autoCompaction;
  assert.deepEqual(await retention("--auto-compaction-retention=2"), {
    mode: "periodic",
    retentionMs: 7_200_000,
  });
  assert.deepEqual(await retention("--auto-compaction-retention=5m"), {
    mode: "periodic",
    retentionMs: 300_000,
  });
  assert.deepEqual(
    await retention("--auto-compaction-retention=1000", "--auto-compaction-mode=revision"),
    {
      mode: "revision",
      retentionRevisions: 1000,
    },
  );
  await refused(
    "BadValue",
    /^error parsing CompactionRetention: --auto-compaction-retention: revision mode/,
    ["--auto-compaction-retention=5m", "--auto-compaction-mode=revision"],
  );
  await refused(
    "BadValue",
    /^error parsing CompactionRetention: --auto-compaction-retention: time: /,
    ["--auto-compaction-retention=soon"],
  );
});

test("log outputs are distinguished", async () => {
  const { config } = await run([
    "--log-outputs=stdout,stderr,/var/log/q.log",
    "--log-format=json",
    "--log-level=panic",
  ]);
  assert.deepEqual(config.log, {
    level: "fatal",
    format: "json",
    outputs: [{ kind: "file", path: "/var/log/q.log" }, { kind: "stderr" }, { kind: "stdout" }],
    rotation: undefined,
  });
  await refused("Contradiction", 'multi logoutput for "default" is not supported yet', [
    "--log-outputs=default,stdout",
  ]);
  await refused("Contradiction", /requires a single file path/, ["--enable-log-rotation"]);
  await refused("BadValue", /must be one of zap/, ["--logger=capnslog"]);
});

test("feature gates are known by name", async () => {
  await refused("BadValue", "--feature-gates: unrecognized feature gate: Nope", [
    "--feature-gates=Nope=true",
  ]);
  await refused("BadValue", "--feature-gates: missing bool value for LeaseCheckpoint", [
    "--feature-gates=LeaseCheckpoint",
  ]);
  await refused("Contradiction", /LeaseCheckpointPersist requires/, [
    "--feature-gates=LeaseCheckpoint=false,LeaseCheckpointPersist=true",
  ]);
  const { config } = await run([
    "--feature-gates=AllAlpha=true,PriorityRequest=false,AllBeta=false",
  ]);
  assert.equal(config.featureGates.get("LeaseCheckpoint"), true);
  assert.equal(config.featureGates.get("PriorityRequest"), false);
  assert.equal(config.featureGates.get("FastLeaseKeepAlive"), false);
});

test("a member that listens everywhere advertises the machine's own address", async () => {
  const argv = ["--name=a", "--listen-peer-urls=http://0.0.0.0:99"];
  const invocation = await loadConfig(argv, {}, reader({}), () => "10.1.2.3");
  assert.equal(invocation.kind, "run");
  const { config } = invocation as Run & { kind: "run" };
  assert.deepEqual(texts(config.advertisePeerUrls), ["http://10.1.2.3:99"]);
  assert.deepEqual(texts(config.initialCluster.get("a")!), ["http://10.1.2.3:99"]);
  assert.deepEqual(texts(config.advertiseClientUrls), ["http://localhost:2379"]);
  assert.deepEqual(texts((await run(argv)).config.advertisePeerUrls), ["http://localhost:2380"]);
});

test("what is wrong with tokens is said before the member starts", async () => {
  const jwt = "--auth-token=jwt,sign-method=RS256,pub-key=x";
  const need = "the options --auth-jwt-... need --auth-token=jwt,...";
  await refused("Contradiction", need, ["--auth-jwt-user-claim=sub"]);
  await refused("Contradiction", need, ["--auth-jwt-clock-skew=1s"]);
  await refused("Contradiction", /clock-skew must be between 0 and 5m/, [
    jwt,
    "--auth-jwt-clock-skew=301s",
  ]);
  await refused("Contradiction", /user-claim must not be empty/, [jwt, "--auth-jwt-user-claim="]);
  await refused("Contradiction", /^--auth-token: jwt needs sign-method/, ["--auth-token=jwt"]);
  await refused("Contradiction", /read-sampling must be >0/, ["--audit-read-sampling=0"]);
});
