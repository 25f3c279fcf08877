/** The commands of `quorate` besides running a member, with etcd's flags. */
import type { Command, Flags, Program } from "@quorate/cli";
import { boolFlag, durationFlag, intFlag, listFlag, textFlag } from "@quorate/cli";
import { startGateway, startGrpcProxy } from "@quorate/proxy/node";
import { envtest } from "./envtest.ts";

const LISTEN = "127.0.0.1:23790";
const ENDPOINTS = listFlag("comma-separated endpoints of the cluster", "127.0.0.1:2379");

const discovery = (what: string): Flags => ({
  "discovery-srv": textFlag(`domain whose SRV records name ${what}`),
  "discovery-srv-name": textFlag("suffix of the service in the SRV records"),
  "insecure-discovery": boolFlag(
    "take endpoints from SRV records without checking their certificates",
  ),
});

const gateway: Command = {
  use: "start",
  short: "start the gateway",
  long: `Forwards TCP connections to the members of a cluster: to each in turn that can be reached. It reads
nothing of what it forwards, so TLS goes through it from the client to the member.`,
  flags: {
    "listen-addr": textFlag("listen address", LISTEN),
    endpoints: ENDPOINTS,
    ...discovery("the members"),
    "trusted-ca-file": textFlag("CA that verifies the endpoints from SRV records"),
    "retry-delay": durationFlag(
      "time between two attempts to reach an endpoint that failed",
      "1m0s",
    ),
  },
  run: startGateway,
};

const upstreamFlags: Flags = {
  endpoints: ENDPOINTS,
  "endpoints-auto-sync-interval": durationFlag(
    "interval at which the endpoints are updated from the cluster's member list (0: never)",
    "0s",
  ),
  ...discovery("the cluster's endpoints"),
  "dial-keepalive-time": durationFlag("silence after which a member is pinged (0: never)", "6s"),
  "dial-keepalive-timeout": durationFlag("time that a member may take to acknowledge a ping", "6s"),
  "permit-without-stream": boolFlag("ping members also while no call is open"),
  cert: textFlag("client certificate for the cluster; it must have no common name"),
  key: textFlag("key of the client certificate"),
  cacert: textFlag("CA that verifies the members' certificates"),
  "insecure-skip-tls-verify": boolFlag("accept any certificate of a member (for tests only)"),
  "max-send-bytes": intFlag("longest request to the cluster", "1572864"),
  "max-recv-bytes": intFlag("longest response of the cluster", "2147483647"),
};

const listenFlags: Flags = {
  "listen-addr": textFlag("listen address", LISTEN),
  "metrics-addr": textFlag("URL of a further address for /metrics, /health and /proxy/*"),
  "data-dir": textFlag("directory for the certificate of --auto-tls", "default.proxy"),
  "cert-file": textFlag("certificate that clients see"),
  "key-file": textFlag("key of that certificate"),
  "trusted-ca-file": textFlag("CA that verifies clients; with it clients need a certificate"),
  "client-crl-file": textFlag("revocation list of client certificates"),
  "auto-tls": boolFlag("make a certificate that signs itself"),
  "self-signed-cert-validity": intFlag("years that such a certificate is valid", "1"),
  "listen-cipher-suites": listFlag("cipher suites for clients (default: Node's)"),
  "tls-min-version": textFlag("lowest TLS version for clients: TLS1.2 or TLS1.3", "TLS1.2"),
  "tls-max-version": textFlag("highest TLS version for clients: TLS1.2 or TLS1.3"),
  "grpc-keepalive-min-time": durationFlag("least time between two pings of a client", "5s"),
  "grpc-keepalive-interval": durationFlag(
    "silence after which a client is pinged (0: never)",
    "2h0m0s",
  ),
  "grpc-keepalive-timeout": durationFlag(
    "time that a client may take to acknowledge a ping",
    "20s",
  ),
  "max-concurrent-streams": intFlag("open streams of one client connection", "4294967295"),
};

const grpcProxy: Command = {
  use: "start",
  short: "start the grpc proxy",
  long: `Serves etcd's API for a cluster behind it. Watches of the same range share one watch of the cluster,
keep-alive requests of the same lease share one request, and serializable reads come from a cache.`,
  flags: {
    ...listenFlags,
    ...upstreamFlags,
    "advertise-client-url": textFlag("address that clients get as the cluster's member", LISTEN),
    "resolver-prefix": textFlag("prefix of the keys under which proxies register"),
    "resolver-ttl": intFlag("time to live of the registration, in seconds"),
    namespace: textFlag("prefix before every key"),
    "enable-pprof": boolFlag("no effect: there are no Go profiles"),
    "experimental-serializable-ordering": boolFlag(
      "serializable reads never show an older revision than one before",
    ),
    "experimental-leasing-prefix": textFlag("refused: see docs/reference/divergence.md"),
    "experimental-enable-grpc-logging": boolFlag("log each request and response, by its size"),
    debug: boolFlag("log more"),
  },
  run: startGrpcProxy,
};

/** The program `quorate` as far as it has commands. */
export const proxyProgram: Program = {
  name: "quorate",
  short: "Proxies of a cluster, and envtest. Without a command quorate runs a member.",
  groups: [
    {
      title: "Commands",
      commands: [
        { use: "gateway <subcommand>", short: "gateway related command", commands: [gateway] },
        {
          use: "grpc-proxy <subcommand>",
          short: "grpc-proxy related command",
          commands: [grpcProxy],
        },
        envtest,
      ],
    },
  ],
  globals: {},
};
