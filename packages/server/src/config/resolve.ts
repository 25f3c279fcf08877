/**
 * From settings to a ServerConfig: defaults that depend on other options, and every check that
 * needs more than one of them.
 */
import { formatDurationMs } from "@quorate/host";
import { ConfigError } from "./errors.ts";
import { type Gates, gates, parseGates } from "./features.ts";
import { parseLogRotation } from "./log-rotation.ts";
import { type OptionName, type OptionValues, options } from "./options.ts";
import { resolveAudit, resolveTokens } from "./resolve-auth.ts";
import { resolveDiscovery } from "./resolve-discovery.ts";
import { resolveHttp } from "./resolve-http.ts";
import { resolvePeers } from "./resolve-peers.ts";
import type {
  AutoCompaction,
  LogConfig,
  LogOutput,
  LogThreshold,
  ServerConfig,
} from "./server-config.ts";
import type { Settings } from "./settings.ts";
import { type ReadFile, resolveTls } from "./tls.ts";
import {
  checkBindUrls,
  checkHostUrls,
  type InitialCluster,
  type MemberUrl,
  parseInitialCluster,
  parseUrl,
  urlsText,
} from "./url.ts";
import { parseDurationMs, quote, ValueError } from "./values.ts";

const MAX_ELECTION_MS = 50_000;
const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3;
const SUGGESTED_MAX_QUOTA_BYTES = 8 * 1024 ** 3;
const SUGGESTED_MAX_REQUEST_BYTES = 10 * 1024 ** 2;

/** What resolving needs of the machine. */
export interface Surroundings {
  readonly readFile: ReadFile;
  /**
   * The machine's own address towards others; advertised in place of "localhost" where a member
   * listens on 0.0.0.0.
   */
  readonly defaultHost?: () => string | undefined;
}

function contradiction(message: string): never {
  throw new ConfigError("Contradiction", message);
}

function checked(where: string, code: "BadValue" | "Contradiction", check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    throw new ConfigError(code, `${where}${error.message}`);
  }
}

/**
 * Warns of options that were changed and have no effect, and refuses those that may not be ignored.
 */
function checkStages(settings: Settings, values: OptionValues): void {
  for (const [name, option] of options) {
    const { stage } = option;
    if (stage.kind === "effective" || !settings.isSet(name) || isDefault(name, values)) continue;
    if (stage.kind === "refused" && stage.harmless.some((text) => isValue(name, values, text)))
      continue;
    if (stage.kind === "refused")
      throw new ConfigError("NotAvailable", `--${name} cannot be used: ${stage.why}`);
    settings.warn("option has no effect", { option: name, reason: stage.why });
  }
}

function isDefault(name: OptionName, values: OptionValues): boolean {
  return isValue(name, values, options.get(name)!.defaultText);
}

/** Whether an option has the value that a text stands for. */
function isValue(name: OptionName, values: OptionValues, text: string): boolean {
  return JSON.stringify(values[name]) === JSON.stringify(options.get(name)!.parse(text));
}

function resolveGates(settings: Settings, values: OptionValues): Gates {
  const result = parseGates([...settings.gates, ...values["feature-gates"]]);
  for (const [name, gate] of gates) {
    if (result.get(name) !== gate.default && gate.why !== undefined)
      settings.warn("feature gate has no effect", { feature: name, reason: gate.why });
  }
  return result;
}

function checkTiming(values: OptionValues): void {
  const heartbeatMs = values["heartbeat-interval"];
  const electionMs = values["election-timeout"];
  if (heartbeatMs === 0) contradiction(`--heartbeat-interval must be >0 (set to ${heartbeatMs}ms)`);
  if (electionMs === 0) contradiction(`--election-timeout must be >0 (set to ${electionMs}ms)`);
  if (5 * heartbeatMs > electionMs) {
    contradiction(
      `--election-timeout[${electionMs}ms] should be at least as 5 times as --heartbeat-interval[${heartbeatMs}ms]`,
    );
  }
  if (electionMs > MAX_ELECTION_MS) {
    contradiction(
      `--election-timeout[${electionMs}ms] is too long, and should be set less than ${MAX_ELECTION_MS}ms`,
    );
  }
  const checkTimeMs = values["compact-hash-check-time"];
  if (checkTimeMs <= 0)
    contradiction(`--compact-hash-check-time must be >0 (set to ${formatDurationMs(checkTimeMs)})`);
  const notNegative = [
    "grpc-keepalive-min-time",
    "grpc-keepalive-interval",
    "grpc-keepalive-timeout",
    "backend-batch-interval",
    "compaction-sleep-interval",
    "watch-progress-notify-interval",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "corrupt-check-time",
    "downgrade-check-time",
  ] as const;
  for (const name of notNegative) {
    if (values[name] < 0)
      contradiction(`--${name} must not be negative (set to ${formatDurationMs(values[name])})`);
  }
}

function checkLimits(settings: Settings, values: OptionValues): void {
  for (const name of [
    "max-txn-ops",
    "max-request-bytes",
    "max-concurrent-streams",
    "snapshot-count",
  ] as const) {
    if (values[name] === 0) contradiction(`--${name} must be >0`);
  }
  for (const name of ["backend-batch-limit", "compaction-batch-limit", "max-learners"] as const) {
    if (values[name] < 0) contradiction(`--${name} must not be negative (set to ${values[name]})`);
  }
  if (values["bcrypt-cost"] < 4 || values["bcrypt-cost"] > 31)
    contradiction(`--bcrypt-cost must be between 4 and 31 (set to ${values["bcrypt-cost"]})`);
  const samplingRate = values["distributed-tracing-sampling-rate"];
  if (values["enable-distributed-tracing"] && (samplingRate < 0 || samplingRate > 1_000_000)) {
    contradiction(
      `--distributed-tracing-sampling-rate must be between 0 and 1000000 (set to ${samplingRate})`,
    );
  }
  if (values["max-request-bytes"] > SUGGESTED_MAX_REQUEST_BYTES) {
    settings.warn("exceeded recommended request limit", {
      "max-request-bytes": values["max-request-bytes"],
      "recommended-request-bytes": SUGGESTED_MAX_REQUEST_BYTES,
    });
  }
  if (values["quota-backend-bytes"] > SUGGESTED_MAX_QUOTA_BYTES) {
    settings.warn("quota exceeds the maximum value", {
      "quota-size-bytes": values["quota-backend-bytes"],
      "quota-maximum-size-bytes": SUGGESTED_MAX_QUOTA_BYTES,
    });
  }
}

function resolveCompaction(values: OptionValues): AutoCompaction {
  const mode = values["auto-compaction-mode"];
  const text = values["auto-compaction-retention"];
  if (/^[+]?[0-9]+$/.test(text)) {
    const count = Number(text);
    if (!Number.isSafeInteger(count))
      throw new ConfigError(
        "BadValue",
        `error parsing CompactionRetention: --auto-compaction-retention: ${quote(text)} is out of range`,
      );
    if (count === 0) return { mode: "off" };
    return mode === "revision"
      ? { mode, retentionRevisions: count }
      : { mode: "periodic", retentionMs: count * 3_600_000 };
  }
  if (mode === "revision") {
    throw new ConfigError(
      "BadValue",
      `error parsing CompactionRetention: --auto-compaction-retention: revision mode takes a number of revisions, not ${quote(text)}`,
    );
  }
  let retentionMs = 0;
  checked("error parsing CompactionRetention: --auto-compaction-retention: ", "BadValue", () => {
    retentionMs = text === "" ? 0 : parseDurationMs(text);
  });
  if (retentionMs < 0)
    contradiction(`--auto-compaction-retention must not be negative (set to ${text})`);
  return retentionMs === 0 ? { mode: "off" } : { mode: "periodic", retentionMs };
}

function resolveLog(settings: Settings, values: OptionValues): LogConfig {
  const names = values["log-outputs"].length === 0 ? ["default"] : values["log-outputs"];
  if (names.length > 1 && names.includes("default"))
    contradiction('multi logoutput for "default" is not supported yet');
  if (names.includes("")) contradiction("--log-outputs must not contain an empty output");
  const outputs: LogOutput[] = [];
  for (const name of names) {
    if (name === "systemd/journal") {
      settings.warn("logs go to standard error, which systemd puts into the journal", {
        "log-output": name,
      });
    }
    const kind =
      name === "stdout"
        ? "stdout"
        : ["default", "stderr", "systemd/journal"].includes(name)
          ? "stderr"
          : "file";
    if (kind === "file") outputs.push({ kind, path: name });
    else if (!outputs.some((output) => output.kind === kind)) outputs.push({ kind });
  }
  if (values["enable-log-rotation"]) {
    if (outputs.filter((output) => output.kind === "file").length !== 1) {
      contradiction(
        "--log-outputs requires a single file path when --log-rotate-config-json is defined",
      );
    }
  }
  const rotation = values["enable-log-rotation"]
    ? parseLogRotation(values["log-rotation-config-json"])
    : undefined;
  const level = values["log-level"];
  return {
    level: (level === "panic" || level === "dpanic" ? "fatal" : level) as LogThreshold,
    format: settings.isSet("log-format") ? (values["log-format"] as "json" | "console") : "auto",
    outputs,
    rotation,
  };
}

/**
 * Where a member listens on all IPv4 addresses and advertises only the default URL, the machine's
 * own address is advertised instead.
 */
function withDefaultHost(
  advertised: readonly MemberUrl[],
  listen: readonly MemberUrl[],
  defaultText: string,
  surroundings: Surroundings,
): readonly MemberUrl[] {
  const isDefaultUrl = advertised.length === 1 && advertised[0].text === defaultText;
  if (!isDefaultUrl || listen[0]?.host !== "0.0.0.0") return advertised;
  const host = surroundings.defaultHost?.();
  return host === undefined
    ? advertised
    : [parseUrl(`${advertised[0].scheme}://${host}:${listen[0].port}`)];
}

function resolveCluster(
  settings: Settings,
  values: OptionValues,
  advertisePeerUrls: readonly MemberUrl[],
): InitialCluster {
  const hasDiscovery = values["discovery-srv"] !== "" || values["discovery-endpoints"].length > 0;
  const isGiven = settings.isSet("initial-cluster") && values["initial-cluster"] !== "";
  if (
    [isGiven, values["discovery-srv"] !== "", values["discovery-endpoints"].length > 0].filter(
      Boolean,
    ).length > 1
  ) {
    contradiction(
      'multiple discovery or bootstrap flags are set. Choose one of "initial-cluster", "discovery-endpoints" or "discovery-srv"',
    );
  }
  if ((values["discovery-token"] !== "") !== values["discovery-endpoints"].length > 0) {
    contradiction("both --discovery-token and --discovery-endpoints must be set");
  }
  if (hasDiscovery) return new Map();
  if (!settings.isSet("initial-cluster")) return new Map([[values.name, advertisePeerUrls]]);
  let cluster: InitialCluster = new Map();
  checked("error setting up initial cluster: --initial-cluster: ", "BadValue", () => {
    cluster = parseInitialCluster(values["initial-cluster"]);
  });
  return cluster;
}

function checkAddresses(settings: Settings, values: OptionValues, fromFile: boolean): void {
  for (const name of [
    "listen-peer-urls",
    "listen-client-urls",
    "listen-client-http-urls",
    "listen-metrics-urls",
  ] as const) {
    checked(`--${name}: `, "Contradiction", () => checkBindUrls(values[name]));
  }
  for (const name of [
    "listen-peer-urls",
    "listen-client-urls",
    "initial-advertise-peer-urls",
  ] as const) {
    if (values[name].length === 0) contradiction(`--${name} must not be empty`);
  }
  for (const [name, form] of [
    ["initial-advertise-peer-urls", '"host:port"'],
    [
      "advertise-client-urls",
      'in the format "host:port", "unix:/path/to/socket" or "unixs:/path/to/socket"',
    ],
  ] as const) {
    try {
      checkHostUrls(values[name]);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      contradiction(
        `--${name} ${quote(urlsText(values[name]))} must be ${form} (${error.message})`,
      );
    }
  }
  if (settings.isSet("listen-client-urls") && !settings.isSet("advertise-client-urls")) {
    if (!fromFile)
      contradiction(
        "--advertise-client-urls is required when --listen-client-urls is set explicitly",
      );
    settings.warn(
      "advertise-client-urls is not in the configuration file; clients get the default",
      {
        "advertise-client-urls": urlsText(values["advertise-client-urls"]),
      },
    );
  }
  if (values["advertise-client-urls"].length === 0)
    contradiction(
      "--advertise-client-urls is required when --listen-client-urls is set explicitly",
    );
  const listeners = new Map<string, string>();
  for (const name of [
    "listen-peer-urls",
    "listen-client-urls",
    "listen-client-http-urls",
    "listen-metrics-urls",
  ] as const) {
    for (const url of values[name]) {
      if (url.path === "" && url.port === 0) continue;
      const place = url.path === "" ? `${url.host}:${url.port}` : url.path;
      const other = listeners.get(place);
      if (other !== undefined)
        contradiction(`--${name} and --${other} both want to listen on ${url.text}`);
      listeners.set(place, name);
    }
  }
}

function warnOfIgnoredTls(settings: Settings, values: OptionValues): void {
  for (const [urlsName, certName, authName, field] of [
    ["listen-peer-urls", "peer-cert-file", "peer-client-cert-auth", "peer-url"],
    ["listen-client-urls", "cert-file", "client-cert-auth", "client-url"],
    ["listen-client-http-urls", "cert-file", "client-cert-auth", "client-url"],
  ] as const) {
    for (const url of values[urlsName]) {
      if (url.scheme === "https" || url.scheme === "unixs") continue;
      if (values[certName] !== "")
        settings.warn(
          "scheme is HTTP while key and cert files are present; ignoring key and cert files",
          { [field]: url.text },
        );
      if (values[authName])
        settings.warn(
          `scheme is HTTP while --${authName} is enabled; ignoring client cert auth for this URL`,
          { [field]: url.text },
        );
    }
  }
}

function warnOfDefaults(settings: Settings, values: OptionValues, dataDir: string): void {
  if (values.name === "default") {
    settings.warn("the member has the default name; give each member its own with --name", {
      name: values.name,
    });
  }
  if (values["data-dir"] === "")
    settings.warn("'data-dir' was empty; using default", { "data-dir": dataDir });
}

/** Checks all settings and puts them together. Throws ConfigError; adds notices to `settings`. */
export function resolveConfig(
  settings: Settings,
  surroundings: Surroundings,
  fromFile: boolean,
): ServerConfig {
  const values = settings.values();
  const log = resolveLog(settings, values);
  if (values.name === "") contradiction("--name must not be empty");
  if (/[\0/]/.test(values.name) && values["data-dir"] === "")
    contradiction(
      `--name ${quote(values.name)} cannot stand in the name of a data directory; set --data-dir`,
    );
  checkAddresses(settings, values, fromFile);
  const advertisePeerUrls = withDefaultHost(
    values["initial-advertise-peer-urls"],
    values["listen-peer-urls"],
    "http://localhost:2380",
    surroundings,
  );
  const advertiseClientUrls = withDefaultHost(
    values["advertise-client-urls"],
    values["listen-client-urls"],
    "http://localhost:2379",
    surroundings,
  );
  const initialCluster = resolveCluster(settings, values, advertisePeerUrls);
  const discovery = resolveDiscovery(values);
  checkTiming(values);
  checkLimits(settings, values);
  const autoCompaction = resolveCompaction(values);
  checkStages(settings, values);
  const clientUrls = [
    ...values["listen-client-urls"],
    ...values["listen-client-http-urls"],
    ...values["listen-metrics-urls"],
  ];
  const dataDir = values["data-dir"] === "" ? `${values.name}.quorate` : values["data-dir"];
  const tlsSurroundings = {
    readFile: surroundings.readFile,
    dataDir,
    warn: (message: string) => settings.warn(message, {}),
  };
  const clientTls = resolveTls("client", values, clientUrls, tlsSurroundings);
  const peerTls = resolveTls("peer", values, values["listen-peer-urls"], tlsSurroundings);
  warnOfIgnoredTls(settings, values);
  const featureGates = resolveGates(settings, values);
  warnOfDefaults(settings, values, dataDir);
  const quota = values["quota-backend-bytes"];
  return {
    name: values.name,
    dataDir,
    walDir: values["wal-dir"] === "" ? `${dataDir}/member/wal` : values["wal-dir"],
    snapDir: `${dataDir}/member/snap`,
    storeDir: `${dataDir}/member/store`,
    listenPeerUrls: values["listen-peer-urls"],
    listenClientUrls: values["listen-client-urls"],
    listenClientHttpUrls: values["listen-client-http-urls"],
    listenMetricsUrls: values["listen-metrics-urls"],
    advertisePeerUrls,
    advertiseClientUrls,
    clientTls,
    peerTls,
    initialCluster,
    // As in etcd: the token of the service takes the place of the cluster's.
    initialClusterToken: discovery?.token ?? values["initial-cluster-token"],
    isNewCluster: values["initial-cluster-state"] === "new",
    discovery,
    discoverySrv:
      values["discovery-srv"] === ""
        ? undefined
        : { domain: values["discovery-srv"], serviceName: values["discovery-srv-name"] },
    forceNewCluster: values["force-new-cluster"],
    autoPromote: values["auto-promote"],
    ...resolvePeers(settings, values, featureGates, advertisePeerUrls),
    preVote: values["pre-vote"],
    strictReconfigCheck: values["strict-reconfig-check"],
    maxLearners: values["max-learners"],
    snapshotCount: values["snapshot-count"],
    snapshotCatchUpEntries: values["snapshot-catchup-entries"],
    maxWalFiles: values["max-wals"],
    backendBatchIntervalMs: values["backend-batch-interval"] || 100,
    backendBatchLimit: values["backend-batch-limit"] || 10_000,
    quotaBackendBytes: quota < 0 ? undefined : quota || DEFAULT_QUOTA_BYTES,
    quotaAutoDisarm: values["quota-auto-disarm"],
    autoCompaction,
    corruptCheckMs: values["corrupt-check-time"],
    compactHashCheckMs: values["compact-hash-check-time"],
    ...{ selfHeal: values["self-heal"], enableV2: values["enable-v2"] },
    compactionBatchLimit: values["compaction-batch-limit"] || 1000,
    compactionSleepIntervalMs: values["compaction-sleep-interval"] || 10,
    maxTxnOps: values["max-txn-ops"],
    maxRequestBytes: values["max-request-bytes"],
    maxConcurrentStreams: values["max-concurrent-streams"],
    grpcKeepalive: {
      minTimeMs: values["grpc-keepalive-min-time"],
      intervalMs: values["grpc-keepalive-interval"],
      timeoutMs: values["grpc-keepalive-timeout"],
    },
    warningApplyDurationMs: values["warning-apply-duration"],
    slowFsyncHandoverMs: values["slow-fsync-handover"],
    warningUnaryRequestDurationMs: values["warning-unary-request-duration"] || 300,
    watchProgressNotifyIntervalMs: values["watch-progress-notify-interval"] || 600_000,
    http: resolveHttp(settings, values),
    jwt: resolveTokens(settings, values),
    authTokenTtlSeconds: values["auth-token-ttl"],
    bcryptCost: values["bcrypt-cost"],
    metrics: values.metrics as "basic" | "extensive",
    tracing: {
      isOn: values["enable-distributed-tracing"],
      address: values["distributed-tracing-address"],
      serviceName: values["distributed-tracing-service-name"],
      instanceId: values["distributed-tracing-instance-id"],
      samplingRate: values["distributed-tracing-sampling-rate"],
    },
    audit: resolveAudit(values),
    log,
    featureGates,
  };
}
