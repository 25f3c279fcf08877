/** From the flags of `quorate apiserver` to the server's options. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { FlagRefusal, type FlagValues } from "@quorate/cli";
import { splitHostPort } from "@quorate/host";
import {
  DEFAULT_PLUGINS,
  FIXED_PLUGINS,
  MORE_PLUGINS,
  type PluginName,
} from "../src/admission/plugin-names.ts";
import { OIDC_ALGORITHMS } from "../src/authn/oidc-tokens.ts";
import type { RemoteReviewVersion } from "../src/authn/remote-reviews.ts";
import { AUTHORIZATION_MODES, type AuthorizationMode } from "../src/authz/union.ts";
import type { PortRange } from "../src/builtin/node-ports.ts";
import { AddressRange } from "../src/builtin/service-ranges.ts";
import { type ChaosSettings, chaosSettingsOf } from "../src/chaos/settings.ts";
import { CONTROLLERS, type ControllerName } from "../src/controllers/controllers.ts";
import { gatesOf } from "./feature-gates.ts";
import type { EtcdOptions, EtcdOverride, ServeOptions } from "./serve-options.ts";
import { REFUSED_FLAGS } from "./unused-flags.ts";

const MAX_PORT = 65_535;
const MAX_IN_FLIGHT = 1_000_000;
const MAX_SECONDS = 2 ** 31 / 1000;

const MAX_DAYS = 36_500;
const MAX_BACKUPS = 100_000;
const MAX_FILE_MIB = 1024 * 1024;

const PLUGINS: readonly PluginName[] = [...DEFAULT_PLUGINS, ...MORE_PLUGINS];

/** Throws FlagRefusal. */
export function optionsOf(flags: FlagValues): ServeOptions {
  const bindAddress = flags.string("bind-address");
  for (const [name, { doc }] of Object.entries(REFUSED_FLAGS))
    if (flags.isSet(name)) throw new FlagRefusal(`--${name} is ${doc}`);
  return {
    bindAddress,
    port: flags.intWithin("secure-port", 0, MAX_PORT),
    hosts: [flags.string("advertise-address"), flags.string("external-hostname")].filter(
      (host) => host !== "",
    ),
    advertiseAddress: flags.string("advertise-address"),
    serviceRanges: serviceRangesOf(flags.strings("service-cluster-ip-range")),
    nodePorts: nodePortsOf(flags.string("service-node-port-range")),
    dataDir: dataDirOf(flags),
    etcd: etcdOf(flags),
    etcdPrefix: flags.string("etcd-prefix"),
    storageMediaType: mediaTypeOf(flags),
    tls: tlsOf(flags),
    clientCaFile: flags.string("client-ca-file"),
    proxyClient: proxyClientOf(flags),
    requestHeaderCaFile: flags.string("requestheader-client-ca-file"),
    proxies: {
      allowedNames: flags.strings("requestheader-allowed-names"),
      usernameHeaders: headerNames(flags, "requestheader-username-headers"),
      uidHeaders: headerNames(flags, "requestheader-uid-headers"),
      groupHeaders: headerNames(flags, "requestheader-group-headers"),
      extraPrefixes: headerNames(flags, "requestheader-extra-headers-prefix"),
    },
    aggregatorRouting: flags.bool("enable-aggregator-routing"),
    tokenAuthFile: flags.string("token-auth-file"),
    oidc: oidcOf(flags),
    serviceAccounts: serviceAccountsOf(flags),
    webhookTokens: webhookTokensOf(flags),
    authorizationModes: modesOf(flags),
    webhookDecisions: webhookDecisionsOf(flags),
    anonymousAuth: flags.bool("anonymous-auth"),
    plugins: pluginsOf(flags),
    controllers: controllersOf(flags),
    encryptionConfigFile: flags.string("encryption-provider-config"),
    encryptionReload: flags.bool("encryption-provider-config-automatic-reload"),
    audit: auditOf(flags),
    eventTtlSeconds: seconds(flags, "event-ttl"),
    watchCache: flags.bool("watch-cache"),
    compactionIntervalMs: flags.durationMs("etcd-compaction-interval"),
    resources: [],
    maxInFlight:
      flags.intWithin("max-requests-inflight", 1, MAX_IN_FLIGHT) +
      flags.intWithin("max-mutating-requests-inflight", 0, MAX_IN_FLIGHT),
    requestTimeoutMs: positive(flags, "request-timeout"),
    minRequestTimeoutMs: flags.intWithin("min-request-timeout", 1, MAX_SECONDS / 2) * 1000,
    webhookServices: servicesOf(flags),
    shutdownDelayMs: flags.durationMs("shutdown-delay-duration"),
    kubeconfigPath: flags.string("kubeconfig-out"),
    featureGates: gatesOf(flags.strings("feature-gates")),
    chaos: chaosOf(flags.string("chaos")),
  };
}

function oidcOf(flags: FlagValues): ServeOptions["oidc"] {
  const [issuer, clientId] = [flags.string("oidc-issuer-url"), flags.string("oidc-client-id")];
  if (issuer === "" && clientId === "") return undefined;
  if (issuer === "" || clientId === "")
    throw new FlagRefusal("--oidc-issuer-url and --oidc-client-id need each other");
  if (URL.parse(issuer)?.protocol !== "https:")
    throw new FlagRefusal(`--oidc-issuer-url is ${issuer}; it must be an https URL`);
  if (flags.strings("service-account-issuer").includes(issuer))
    throw new FlagRefusal("--oidc-issuer-url is an issuer of --service-account-issuer, too");
  const algorithms = flags.strings("oidc-signing-algs");
  for (const one of algorithms)
    if (!OIDC_ALGORITHMS.includes(one))
      throw new FlagRefusal(`--oidc-signing-algs has ${one}; known: ${OIDC_ALGORITHMS.join(", ")}`);
  const requiredClaims = flags.strings("oidc-required-claim").map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
    throw new FlagRefusal(`--oidc-required-claim is ${text}; it must be name=value`);
  });
  return {
    issuer,
    clientId,
    algorithms,
    usernameClaim: required(flags, "oidc-username-claim"),
    usernamePrefix: flags.string("oidc-username-prefix"),
    groupsClaim: flags.string("oidc-groups-claim"),
    groupsPrefix: flags.string("oidc-groups-prefix"),
    requiredClaims: new Map(requiredClaims),
    caFile: flags.string("oidc-ca-file"),
  };
}

function headerNames(flags: FlagValues, name: string): readonly string[] {
  const names = flags.strings(name).map((one) => one.trim());
  if (names.includes("")) throw new FlagRefusal(`--${name}: empty header ""`);
  return names;
}

function webhookTokensOf(flags: FlagValues): ServeOptions["webhookTokens"] {
  const configFile = flags.string("authentication-token-webhook-config-file");
  if (configFile === "") return undefined;
  return {
    configFile,
    version: reviewVersionOf(
      flags.string("authentication-token-webhook-version"),
      "unsupported authentication webhook version",
    ),
    cacheTtlMs: flags.durationMs("authentication-token-webhook-cache-ttl"),
  };
}

function webhookDecisionsOf(flags: FlagValues): ServeOptions["webhookDecisions"] {
  const configFile = flags.string("authorization-webhook-config-file");
  const isWanted = modesOf(flags).includes("Webhook");
  if (isWanted && configFile === "")
    throw new FlagRefusal("authorization-mode Webhook's authorization config file not passed");
  if (!isWanted && configFile !== "")
    throw new FlagRefusal(
      "cannot specify --authorization-webhook-config-file without mode Webhook",
    );
  if (!isWanted) return undefined;
  return {
    configFile,
    version: reviewVersionOf(
      flags.string("authorization-webhook-version"),
      "unsupported webhook authorizer version",
    ),
    allowedMs: flags.durationMs("authorization-webhook-cache-authorized-ttl"),
    refusedMs: flags.durationMs("authorization-webhook-cache-unauthorized-ttl"),
  };
}

function reviewVersionOf(version: string, problem: string): RemoteReviewVersion {
  if (version === "v1" || version === "v1beta1") return version;
  const supported = 'supported versions are "v1", "v1beta1"';
  throw new FlagRefusal(`${problem} ${JSON.stringify(version)}, ${supported}`);
}

function chaosOf(text: string): ChaosSettings | undefined {
  if (text === "") return undefined;
  try {
    return chaosSettingsOf(text);
  } catch (error) {
    throw new FlagRefusal(`--chaos: ${(error as Error).message}`);
  }
}

/** One range, or one of each family. */
function serviceRangesOf(texts: readonly string[]): string[] {
  const name = "--service-cluster-ip-range";
  const ranges = texts.map((text) => {
    const range = AddressRange.parse(text.trim());
    if (range !== undefined && range.size > 0) return range;
    throw new FlagRefusal(`${name} is ${text}; it must be ADDRESS/BITS, with addresses to give`);
  });
  if (ranges.length > 2) throw new FlagRefusal(`${name} must not contain more than two entries`);
  if (ranges.length === 0) throw new FlagRefusal(`${name} must not be empty`);
  if (ranges.length === 2 && ranges[0]?.family === ranges[1]?.family)
    throw new FlagRefusal(`${name}[0] and ${name}[1] must be of different IP family`);
  return ranges.map(({ cidr }) => cidr);
}

/** "30000-32767" or "30000+2767", as Kubernetes writes ranges of ports. */
function nodePortsOf(text: string): PortRange {
  const [, begin = "", sign, end = ""] = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.trim()) ?? [];
  const first = Number(begin);
  const last = sign === undefined ? first : sign === "+" ? first + Number(end) : Number(end);
  if (begin !== "" && first > 0 && first <= last && last <= MAX_PORT) return { first, last };
  throw new FlagRefusal(`--service-node-port-range is ${text}; it must be FIRST-LAST`);
}

function required(flags: FlagValues, name: string): string {
  const value = flags.string(name);
  if (value === "") throw new FlagRefusal(`--${name} must not be empty`);
  return value;
}

function dataDirOf(flags: FlagValues): string {
  const certDir = flags.string("cert-dir");
  const isOurs = certDir === "" || flags.isSet("data-dir");
  return isOurs ? required(flags, "data-dir") : join(certDir, "quorate");
}

function positive(flags: FlagValues, name: string): number {
  const valueMs = flags.durationMs(name);
  if (valueMs > 0 && valueMs < 2 ** 31) return valueMs;
  throw new FlagRefusal(`--${name} must be longer than 0 and shorter than 24 days`);
}

function seconds(flags: FlagValues, name: string): number {
  return Math.max(1, Math.round(positive(flags, name) / 1000));
}

function etcdOf(flags: FlagValues): EtcdOptions | undefined {
  const servers = flags.strings("etcd-servers");
  const caFile = flags.string("etcd-cafile");
  const certFile = flags.string("etcd-certfile");
  const keyFile = flags.string("etcd-keyfile");
  if (servers.length === 0) {
    if (flags.isSet("embedded") && !flags.bool("embedded"))
      throw new FlagRefusal("--embedded=false needs --etcd-servers");
    if (flags.strings("etcd-servers-overrides").length > 0)
      throw new FlagRefusal("--etcd-servers-overrides needs --etcd-servers");
    if (caFile !== "" || certFile !== "" || keyFile !== "")
      throw new FlagRefusal(
        "--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers",
      );
    return undefined;
  }
  if (flags.bool("embedded"))
    throw new FlagRefusal("--embedded and --etcd-servers exclude each other");
  if ((certFile === "") !== (keyFile === ""))
    throw new FlagRefusal("--etcd-certfile and --etcd-keyfile need each other");
  return { servers, overrides: overridesOf(flags), caFile, certFile, keyFile };
}

/** "group/resource#server;server" each; "" is the core group. */
function overridesOf(flags: FlagValues): EtcdOverride[] {
  return flags.strings("etcd-servers-overrides").map((text) => {
    const [ref = "", list = "", ...rest] = text.split("#");
    const [group = "", resource = "", ...more] = ref.split("/");
    const servers = list.split(";");
    const isUrl = (server: string) => /^https?:$/.test(URL.parse(server)?.protocol ?? "");
    if (rest.length === 0 && more.length === 0 && resource !== "" && servers.every(isUrl))
      return { group, resource, servers };
    throw new FlagRefusal(
      "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers " +
        `are URLs, semicolon separated; it is ${text}`,
    );
  });
}

function tlsOf(flags: FlagValues): ServeOptions["tls"] {
  const [certFile, keyFile] = [flags.string("tls-cert-file"), flags.string("tls-private-key-file")];
  if ((certFile === "") !== (keyFile === ""))
    throw new FlagRefusal("--tls-cert-file and --tls-private-key-file need each other");
  if (certFile !== "") return { certFile, keyFile };
  const dir = flags.string("cert-dir");
  const pair = { certFile: join(dir, "apiserver.crt"), keyFile: join(dir, "apiserver.key") };
  return dir !== "" && existsSync(pair.certFile) && existsSync(pair.keyFile) ? pair : undefined;
}

function proxyClientOf(flags: FlagValues): ServeOptions["proxyClient"] {
  const certFile = flags.string("proxy-client-cert-file");
  const keyFile = flags.string("proxy-client-key-file");
  if ((certFile === "") !== (keyFile === ""))
    throw new FlagRefusal("--proxy-client-cert-file and --proxy-client-key-file need each other");
  return certFile === "" ? undefined : { certFile, keyFile };
}

function mediaTypeOf(flags: FlagValues): ServeOptions["storageMediaType"] {
  const value = flags.string("storage-media-type");
  if (value === "application/json" || value === "application/vnd.kubernetes.protobuf") return value;
  throw new FlagRefusal(
    `--storage-media-type is ${JSON.stringify(value)}; it must be application/json or application/vnd.kubernetes.protobuf`,
  );
}

function modesOf(flags: FlagValues): AuthorizationMode[] {
  const modes = flags.strings("authorization-mode");
  for (const mode of modes)
    if (!(AUTHORIZATION_MODES as readonly string[]).includes(mode))
      throw new FlagRefusal(
        `--authorization-mode has ${JSON.stringify(mode)}; known modes: ${AUTHORIZATION_MODES.join(", ")}`,
      );
  if (modes.length === 0 || new Set(modes).size !== modes.length)
    throw new FlagRefusal("--authorization-mode needs at least one mode, and each once");
  return modes as AuthorizationMode[];
}

function serviceAccountsOf(flags: FlagValues): ServeOptions["serviceAccounts"] {
  const issuers = flags.strings("service-account-issuer");
  if (issuers.length === 0) throw new FlagRefusal("--service-account-issuer must not be empty");
  return {
    issuers,
    audiences: flags.strings("api-audiences"),
    maxExpirationSeconds: Math.round(
      flags.durationMs("service-account-max-token-expiration") / 1000,
    ),
    signingKeyFile: flags.string("service-account-signing-key-file"),
    keyFiles: flags.strings("service-account-key-file"),
  };
}

const AUDIT_MODES = ["batch", "blocking", "blocking-strict"];

function auditOf(flags: FlagValues): ServeOptions["audit"] {
  const [format, mode] = [flags.string("audit-log-format"), flags.string("audit-log-mode")];
  if (format !== "json" && format !== "legacy")
    throw new FlagRefusal(
      `--audit-log-format is ${JSON.stringify(format)}; it must be json or legacy`,
    );
  if (!AUDIT_MODES.includes(mode))
    throw new FlagRefusal(
      `--audit-log-mode is ${JSON.stringify(mode)}; it must be ${AUDIT_MODES.join(", ")}`,
    );
  return {
    policyFile: flags.string("audit-policy-file"),
    path: flags.string("audit-log-path"),
    maxAgeDays: flags.intWithin("audit-log-maxage", 0, MAX_DAYS),
    maxBackups: flags.intWithin("audit-log-maxbackup", 0, MAX_BACKUPS),
    maxSizeMib: flags.intWithin("audit-log-maxsize", 0, MAX_FILE_MIB),
    compress: flags.bool("audit-log-compress"),
    format,
    isStrict: mode === "blocking-strict",
  };
}

/** "name.namespace=host:port" each. */
function servicesOf(flags: FlagValues): ReadonlyMap<string, string> {
  const services = new Map<string, string>();
  for (const text of flags.strings("webhook-service")) {
    const [service, address = "", ...rest] = text.split("=");
    const isPlace = splitHostPort(address) !== undefined && rest.length === 0;
    if (!service?.includes(".") || !isPlace)
      throw new FlagRefusal(`--webhook-service is ${text}; it must be name.namespace=host:port`);
    services.set(service, address);
  }
  return services;
}

/** As kube-controller-manager reads its flag: a name decides more than "*". */
function controllersOf(flags: FlagValues): ControllerName[] {
  const wanted = new Set(flags.strings("controllers"));
  for (const text of wanted) {
    const name = text.replace(/^-/, "");
    if (text !== "*" && !(CONTROLLERS as readonly string[]).includes(name))
      throw new FlagRefusal(
        `--controllers has ${JSON.stringify(text)}; known: ${CONTROLLERS.join(", ")}`,
      );
  }
  return CONTROLLERS.filter(
    (name) => wanted.has(name) || (wanted.has("*") && !wanted.has(`-${name}`)),
  );
}

function pluginsOf(flags: FlagValues): ReadonlySet<PluginName> {
  const added = new Set(flags.strings("enable-admission-plugins"));
  const removed = new Set(flags.strings("disable-admission-plugins"));
  const known: readonly string[] = [...FIXED_PLUGINS, ...PLUGINS];
  for (const name of added)
    if (!known.includes(name))
      throw new FlagRefusal(
        `--enable-admission-plugins has ${JSON.stringify(name)}; known: ${known.join(", ")}`,
      );
  for (const name of FIXED_PLUGINS)
    if (removed.has(name))
      throw new FlagRefusal(`--disable-admission-plugins has ${name}, which is always on`);
  for (const name of DEFAULT_PLUGINS) added.add(name);
  return new Set(PLUGINS.filter((name) => added.has(name) && !removed.has(name)));
}
