/**
 * From settings to a ServerConfig: defaults that depend on other options, and every check that
 * needs more than one of them.
 */

import { formatDurationMs } from "@quorate/host";
import {
  type AutoCompaction,
  ConfigError,
  checked,
  contradiction,
  type Gates,
  gates,
  parseDurationMs,
  parseGates,
} from "@quorate/member";
import { defined, quoteText } from "@quorate/proto";
import { checkAddresses, warnOfIgnoredTls } from "./check-addresses.ts";
import { type OptionName, type OptionValues, options, plainFields } from "./options.ts";
import { resolveAudit, resolveProxies, resolveTokens } from "./resolve-auth.ts";
import { resolveCluster, resolvePeers, withDefaultHost } from "./resolve-cluster.ts";
import { resolveDiscovery } from "./resolve-discovery.ts";
import { frontendThreadsOf, resolveHttp } from "./resolve-http.ts";
import { resolveLog } from "./resolve-log.ts";
import type { KeepaliveConfig, ServerConfig, TracingConfig } from "./server-config.ts";
import type { Settings } from "./settings.ts";
import { type ReadFile, resolveTls } from "./tls.ts";

const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3;

/** What resolving needs of the machine. */
export interface Surroundings {
  readonly readFile: ReadFile;
  /**
   * The machine's own address towards others; advertised in place of "localhost" where a member
   * listens on 0.0.0.0.
   */
  readonly defaultHost?: () => string | undefined;
}

function resolveGates(settings: Settings, values: OptionValues): Gates {
  const result = parseGates([...settings.gates, ...values["feature-gates"]]);
  for (const [name, gate] of gates) {
    if (result.get(name) !== gate.default && gate.why !== undefined)
      settings.warn("feature gate has no effect", { feature: name, reason: gate.why });
  }
  return result;
}

function checkName(values: OptionValues): void {
  if (values.name === "") contradiction("--name must not be empty");
  if (/[\0/]/.test(values.name) && values["data-dir"] === "")
    contradiction(
      `--name ${quoteText(values.name)} cannot stand in the name of a data directory; set --data-dir`,
    );
}

type Directories = Pick<ServerConfig, "dataDir" | "walDir" | "snapDir" | "storeDir">;

function directoriesOf(values: OptionValues): Directories {
  const dataDir = values["data-dir"] === "" ? `${values.name}.quorate` : values["data-dir"];
  return {
    dataDir,
    walDir: values["wal-dir"] === "" ? `${dataDir}/member/wal` : values["wal-dir"],
    snapDir: `${dataDir}/member/snap`,
    storeDir: `${dataDir}/member/store`,
  };
}

function resolveBothTls(
  settings: Settings,
  values: OptionValues,
  dataDir: string,
  readFile: ReadFile,
): Pick<ServerConfig, "clientTls" | "peerTls"> {
  const clientUrls = [
    ...values["listen-client-urls"],
    ...values["listen-client-http-urls"],
    ...values["listen-metrics-urls"],
  ];
  const warn = (message: string) => settings.warn(message, {});
  const tlsSurroundings = { readFile, dataDir, warn };
  const clientTls = resolveTls("client", values, clientUrls, tlsSurroundings);
  const peerTls = resolveTls("peer", values, values["listen-peer-urls"], tlsSurroundings);
  warnOfIgnoredTls(settings, values);
  return { clientTls, peerTls };
}

function keepaliveOf(values: OptionValues): KeepaliveConfig {
  return {
    minTimeMs: values["grpc-keepalive-min-time"],
    intervalMs: values["grpc-keepalive-interval"],
    timeoutMs: values["grpc-keepalive-timeout"],
  };
}

function tracingOf(values: OptionValues): TracingConfig {
  return {
    isOn: values["enable-distributed-tracing"],
    address: values["distributed-tracing-address"],
    serviceName: values["distributed-tracing-service-name"],
    instanceId: values["distributed-tracing-instance-id"],
    samplingRate: values["distributed-tracing-sampling-rate"],
  };
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
  checkName(values);
  checkAddresses(settings, values, fromFile);
  const { readFile, defaultHost } = surroundings;
  const advertisePeerUrls = withDefaultHost(
    values["initial-advertise-peer-urls"],
    values["listen-peer-urls"],
    "http://localhost:2380",
    defaultHost,
  );
  const advertiseClientUrls = withDefaultHost(
    values["advertise-client-urls"],
    values["listen-client-urls"],
    "http://localhost:2379",
    defaultHost,
  );
  const initialCluster = resolveCluster(settings, values, advertisePeerUrls);
  const discovery = resolveDiscovery(settings, values);
  checkTiming(values);
  checkLimits(settings, values);
  const autoCompaction = resolveCompaction(values);
  checkStages(settings, values);
  const directories = directoriesOf(values);
  const tls = resolveBothTls(settings, values, directories.dataDir, readFile);
  const featureGates = resolveGates(settings, values);
  warnOfDefaults(settings, values, directories.dataDir);
  const quota = values["quota-backend-bytes"];
  const srv = { domain: values["discovery-srv"], serviceName: values["discovery-srv-name"] };
  return {
    ...plainFields(values),
    ...directories,
    advertisePeerUrls,
    advertiseClientUrls,
    ...tls,
    initialCluster,
    // As in etcd: the token of the service takes the place of the cluster's.
    initialClusterToken: discovery?.token ?? values["initial-cluster-token"],
    isNewCluster: values["initial-cluster-state"] === "new",
    discovery,
    discoverySrv: srv.domain === "" ? undefined : srv,
    ...resolvePeers(settings, values, featureGates, advertisePeerUrls),
    quotaBackendBytes: quota < 0 ? undefined : quota || DEFAULT_QUOTA_BYTES,
    autoCompaction,
    grpcKeepalive: keepaliveOf(values),
    http: resolveHttp(settings, values),
    frontendThreads: frontendThreadsOf(values),
    trustedProxies: resolveProxies(values),
    jwt: resolveTokens(settings, values),
    tracing: tracingOf(values),
    audit: resolveAudit(values),
    log,
    featureGates,
  };
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
  return isValue(name, values, defined(options.get(name), "the option").defaultText);
}

/** Whether an option has the value that a text stands for. */
function isValue(name: OptionName, values: OptionValues, text: string): boolean {
  return (
    JSON.stringify(values[name]) ===
    JSON.stringify(defined(options.get(name), "the option").parse(text))
  );
}

/** Throws ConfigError. */
function resolveCompaction(values: OptionValues): AutoCompaction {
  const mode = values["auto-compaction-mode"];
  const text = values["auto-compaction-retention"];
  if (/^[+]?[0-9]+$/.test(text)) {
    const count = Number(text);
    if (!Number.isSafeInteger(count))
      throw new ConfigError(
        "BadValue",
        `error parsing CompactionRetention: --auto-compaction-retention: ${quoteText(text)} is out of range`,
      );
    if (count === 0) return { mode: "off" };
    return mode === "revision"
      ? { mode, retentionRevisions: count }
      : { mode: "periodic", retentionMs: count * 3_600_000 };
  }
  if (mode === "revision") {
    throw new ConfigError(
      "BadValue",
      `error parsing CompactionRetention: --auto-compaction-retention: revision mode takes a number of revisions, not ${quoteText(text)}`,
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

const MAX_ELECTION_MS = 50_000;
const SUGGESTED_MAX_QUOTA_BYTES = 8 * 1024 ** 3;
const SUGGESTED_MAX_REQUEST_BYTES = 10 * 1024 ** 2;

/** Throws ConfigError. */
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

/** Throws ConfigError; warns of limits above what is recommended. */
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
