/**
 * From settings to a ServerConfig: defaults that depend on other options, and every check that
 * needs more than one of them.
 */

import { contradiction, type Gates, gates, parseGates } from "@quorate/member";
import { quoteText } from "@quorate/proto";
import { checkAddresses, warnOfIgnoredTls } from "./check-addresses.ts";
import { checkLimits, checkTiming } from "./check-limits.ts";
import { checkStages } from "./check-stages.ts";
import { type OptionValues, plainFields } from "./options.ts";
import { resolveAudit, resolveProxies, resolveTokens } from "./resolve-auth.ts";
import { resolveCluster, withDefaultHost } from "./resolve-cluster.ts";
import { resolveCompaction } from "./resolve-compaction.ts";
import { resolveDiscovery } from "./resolve-discovery.ts";
import { frontendThreadsOf, resolveHttp } from "./resolve-http.ts";
import { resolveLog } from "./resolve-log.ts";
import { resolvePeers } from "./resolve-peers.ts";
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
