/** The flags of `grpc-proxy start` as options, refused with etcd's texts (etcdmain/grpc_proxy.go). */
import { FlagRefusal, type FlagValues } from "@quorate/cli";
import { splitHostPort } from "@quorate/host";
import type { TlsVersion } from "@quorate/host/node";
import { nodeCiphers } from "@quorate/server";

/** Go's default of --max-send-bytes and the most that a server there receives. */
const SERVER_RECEIVE_BYTES = 4 * 1024 * 1024;
const MAX_INT32 = 2 ** 31 - 1;
const MAX_UINT32 = 2 ** 32 - 1;

/** Files of one side's TLS; empty texts for none. */
export interface TlsFlags {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

export interface ProxyFlags {
  readonly listen: { readonly host: string; readonly port: number };
  readonly listenText: string;
  readonly metricsUrl: string;
  readonly endpoints: readonly string[];
  readonly autoSyncMs: number;
  readonly srv: {
    readonly domain: string;
    readonly serviceName: string;
    readonly isInsecure: boolean;
  };
  readonly dialKeepAlive: {
    readonly timeMs: number;
    readonly timeoutMs: number;
    readonly whenIdle: boolean;
  };
  readonly advertised: string;
  readonly resolver: { readonly prefix: string; readonly ttlSeconds: number };
  readonly namespace: string;
  readonly dataDir: string;
  readonly maxSendBytes: number;
  readonly maxReceiveBytes: number;
  /** The longest request that is received. */
  readonly maxRequestBytes: number;
  readonly serverKeepAlive: {
    readonly minTimeMs: number;
    readonly intervalMs: number;
    readonly timeoutMs: number;
  };
  readonly maxConcurrentStreams: number;
  readonly upstreamTls: TlsFlags & { readonly skipsVerification: boolean };
  readonly listenTls: TlsFlags & {
    readonly crlFile: string;
    readonly isAuto: boolean;
    readonly validityYears: number;
    readonly ciphers: string | undefined;
    readonly minVersion: TlsVersion;
    readonly maxVersion: TlsVersion;
  };
  readonly isOrdered: boolean;
  readonly logsCalls: boolean;
  readonly isDebug: boolean;
  readonly wantsProfiles: boolean;
}

/** Reads the flags. Throws FlagRefusal. */
export function proxyFlags(flags: FlagValues): ProxyFlags {
  const [prefix, ttlSeconds] = [flags.string("resolver-prefix"), flags.int("resolver-ttl")];
  const advertised = flags.string("advertise-client-url");
  if (prefix !== "" && ttlSeconds < 1) throw new FlagRefusal(`invalid resolver-ttl ${ttlSeconds}`);
  if (prefix === "" && ttlSeconds > 0)
    throw new FlagRefusal(`invalid resolver-prefix ${JSON.stringify(prefix)}`);
  if (prefix !== "" && ttlSeconds > 0 && advertised === "")
    throw new FlagRefusal(`invalid advertise-client-url ${JSON.stringify(advertised)}`);
  const validityYears = flags.intWithin("self-signed-cert-validity", 0, 1000);
  if (flags.bool("auto-tls") && validityYears === 0)
    throw new FlagRefusal("selfSignedCertValidity is invalid,it should be greater than 0");
  if (flags.string("experimental-leasing-prefix") !== "")
    throw new FlagRefusal(
      "--experimental-leasing-prefix is not offered: reads from leased keys that a partitioned proxy " +
        "answers by itself are not linearizable; use serializable reads, which the proxy caches",
    );
  const listenText = flags.string("listen-addr");
  const listen = splitHostPort(listenText);
  if (listen === undefined) throw new FlagRefusal(`listen tcp: address ${listenText}: invalid`);
  const maxSendBytes = flags.intWithin("max-send-bytes", 0, MAX_INT32);
  return {
    listen,
    listenText,
    metricsUrl: flags.string("metrics-addr"),
    endpoints: flags.strings("endpoints"),
    autoSyncMs: flags.durationMs("endpoints-auto-sync-interval"),
    srv: {
      domain: flags.string("discovery-srv"),
      serviceName: flags.string("discovery-srv-name"),
      isInsecure: flags.bool("insecure-discovery"),
    },
    dialKeepAlive: {
      timeMs: flags.durationMs("dial-keepalive-time"),
      timeoutMs: flags.durationMs("dial-keepalive-timeout"),
      whenIdle: flags.bool("permit-without-stream"),
    },
    advertised,
    resolver: { prefix, ttlSeconds },
    namespace: flags.string("namespace"),
    dataDir: flags.string("data-dir"),
    maxSendBytes: maxSendBytes === 0 ? MAX_INT32 : maxSendBytes,
    maxReceiveBytes: flags.intWithin("max-recv-bytes", 0, MAX_INT32) || MAX_INT32,
    maxRequestBytes: Math.max(SERVER_RECEIVE_BYTES, maxSendBytes),
    serverKeepAlive: {
      minTimeMs: flags.durationMs("grpc-keepalive-min-time"),
      intervalMs: flags.durationMs("grpc-keepalive-interval"),
      timeoutMs: flags.durationMs("grpc-keepalive-timeout"),
    },
    maxConcurrentStreams: flags.intWithin("max-concurrent-streams", 0, MAX_UINT32) || MAX_UINT32,
    upstreamTls: {
      certFile: flags.string("cert"),
      keyFile: flags.string("key"),
      caFile: flags.string("cacert"),
      skipsVerification: flags.bool("insecure-skip-tls-verify"),
    },
    listenTls: { ...listenTls(flags), validityYears },
    isOrdered: flags.bool("experimental-serializable-ordering"),
    logsCalls: flags.bool("experimental-enable-grpc-logging"),
    isDebug: flags.bool("debug"),
    wantsProfiles: flags.bool("enable-pprof"),
  };
}

function listenTls(flags: FlagValues): Omit<ProxyFlags["listenTls"], "validityYears"> {
  const suites = flags.strings("listen-cipher-suites");
  const min = versionOf(flags, "tls-min-version") ?? "TLSv1.2";
  const max = versionOf(flags, "tls-max-version") ?? "TLSv1.3";
  if (min > max)
    throw new FlagRefusal(
      `min version (${flags.string("tls-min-version")}) is greater than max version (${flags.string("tls-max-version")})`,
    );
  if (min === "TLSv1.3" && suites.length > 0)
    throw new FlagRefusal("cipher suites cannot be configured when only TLS1.3 is enabled");
  let ciphers: string | undefined;
  try {
    ciphers = nodeCiphers(suites);
  } catch (error) {
    throw new FlagRefusal((error as Error).message);
  }
  return {
    certFile: flags.string("cert-file"),
    keyFile: flags.string("key-file"),
    caFile: flags.string("trusted-ca-file"),
    crlFile: flags.string("client-crl-file"),
    isAuto: flags.bool("auto-tls"),
    ciphers,
    minVersion: min,
    maxVersion: max,
  };
}

/** Undefined for an empty text. */
function versionOf(flags: FlagValues, name: string): TlsVersion | undefined {
  const text = flags.string(name);
  if (text === "") return undefined;
  if (text === "TLS1.2") return "TLSv1.2";
  if (text === "TLS1.3") return "TLSv1.3";
  throw new FlagRefusal(`${name} is invalid: unexpected TLS version ${JSON.stringify(text)}`);
}
