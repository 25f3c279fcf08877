/** The flags of `quorate apiserver`: kube-apiserver's names where it has the option. */
import type { Flag, Flags, FlagValues } from "@quorate/cli";
import { REFUSED_FLAGS, UNUSED_FLAGS } from "./unused-flags.ts";

const text = (doc: string, defaultText = ""): Flag => ({ kind: "string", defaultText, doc });
const yesNo = (doc: string, defaultText = "false"): Flag => ({ kind: "bool", defaultText, doc });
const list = (doc: string, defaultText = ""): Flag => ({ kind: "strings", defaultText, doc });
const int = (doc: string, defaultText: string): Flag => ({ kind: "int", defaultText, doc });
const duration = (doc: string, defaultText: string): Flag => ({
  kind: "duration",
  defaultText,
  doc,
});

const storage: Flags = {
  version: yesNo("print the version of the API, and end"),
  "data-dir": text(
    "directory for certificates, the admin's kubeconfig, and the embedded member's data",
    "default.apiserver",
  ),
  embedded: yesNo("keep objects with a member in this process; implied without --etcd-servers"),
  "etcd-servers": list("endpoints of the cluster that holds the objects"),
  "etcd-servers-overrides": list(
    "clusters of single resources, by commas: group/resource#server;server, such as /events#https://host:2379",
  ),
  "etcd-cafile": text("CA that verifies the cluster's certificates"),
  "etcd-certfile": text("client certificate for the cluster"),
  "etcd-keyfile": text("key of that certificate"),
  "etcd-prefix": text("prefix of all keys in the cluster", "/registry"),
  "etcd-compaction-interval": duration("interval of compactions (0: none by this server)", "5m0s"),
  "storage-media-type": text(
    "encoding of built-in kinds in the cluster: application/vnd.kubernetes.protobuf or application/json",
    "application/vnd.kubernetes.protobuf",
  ),
  "watch-cache": yesNo("keep objects in memory, for reads and watches", "true"),
  "event-ttl": duration("how long events are kept", "1h0m0s"),
  "encryption-provider-config": text("file with the keys that encrypt objects at rest"),
  "encryption-provider-config-automatic-reload": yesNo("follow changes of that file"),
};

const serving: Flags = {
  "bind-address": text("address to listen on", "127.0.0.1"),
  "secure-port": int("port to listen on; 0 for a free one", "6443"),
  "advertise-address": text(
    "another address by which clients reach the server; in the Endpoints kubernetes",
  ),
  "service-cluster-ip-range": text(
    "the Service kubernetes has the first address of this range; other services have none",
    "10.0.0.0/24",
  ),
  "external-hostname": text("another host name by which clients reach the server"),
  "tls-cert-file": text("certificate that clients see; by default one made in --data-dir"),
  "tls-private-key-file": text("key of that certificate"),
  "cert-dir": text(
    "directory with apiserver.crt and apiserver.key, which are used if they are there; --data-dir is then quorate in it by default",
  ),
  "kubeconfig-out": text(
    "file for the admin's kubeconfig (default: admin.kubeconfig in --data-dir)",
  ),
};

const identity: Flags = {
  "client-ca-file": text("CA of client certificates; by default the one made in --data-dir"),
  "proxy-client-cert-file": text(
    "certificate that other API servers (APIService) are shown; by default one made in --data-dir",
  ),
  "proxy-client-key-file": text("key of that certificate"),
  "requestheader-client-ca-file": text(
    "CA of that certificate, for the ConfigMap extension-apiserver-authentication",
  ),
  "requestheader-allowed-names": list("names in that certificate, for the same ConfigMap"),
  "enable-aggregator-routing": yesNo(
    "requests go on to endpoints of the services of other API servers, not to their addresses",
  ),
  "token-auth-file": text('CSV file with static tokens: token,user,uid,"group1,group2"'),
  "anonymous-auth": yesNo("serve requests without credentials as system:anonymous", "true"),
  "authorization-mode": list("authorizers in order: RBAC, AlwaysAllow, AlwaysDeny", "RBAC"),
  "enable-admission-plugins": list("admission besides the standard one, by plug-in names"),
  "disable-admission-plugins": list("plug-ins that are not to run, where they are not always on"),
  controllers: list(
    "controllers that run here, by kube-controller-manager's names: * for all, name or -name for one; empty for none, as with envtest",
    "*",
  ),
  "service-account-issuer": list(
    "issuers of service account tokens; the first one signs",
    "https://kubernetes.default.svc.cluster.local",
  ),
  "service-account-signing-key-file": text("key that signs them; by default one in --data-dir"),
  "service-account-key-file": list("more keys whose tokens are accepted"),
  "service-account-max-token-expiration": duration("bound of their lifetime (0: none)", "0s"),
  "api-audiences": list("audiences of the server's tokens (default: the issuers)"),
};

const limits: Flags = {
  "max-requests-inflight": int("reads in flight at a time; the sum of both is shared", "400"),
  "max-mutating-requests-inflight": int("writes in flight at a time", "200"),
  "request-timeout": duration("the longest time of a request that is no watch", "1m0s"),
  "min-request-timeout": int("seconds after which a watch ends, or up to twice as many", "1800"),
  chaos: text(
    "faults by seed, for tests of controllers: seed=7,stale-lists=0.3,watch-delay=0.5:2s,gone=0.1,cuts=0.1,agent=NAME",
  ),
  "webhook-service": list(
    "where services of webhooks and of other API servers are: name.namespace=host:port",
  ),
  "shutdown-delay-duration": duration("how long /readyz fails before the server stops", "0s"),
  "log-level": {
    ...text("lowest level that is logged: debug, info, warn, error", "info"),
    values: ["debug", "info", "warn", "error"],
  },
};

const audit: Flags = {
  "audit-policy-file": text("file with the rules which requests are recorded"),
  "audit-log-path": text("file for the records of requests; - for standard output"),
  "audit-log-format": text("json, or legacy for short texts", "json"),
  "audit-log-mode": text(
    "batch or blocking: records are written behind requests; blocking-strict: requests are refused while records cannot be written",
    "blocking",
  ),
  "audit-log-maxsize": int("MiB at which the file is rotated (0: 100)", "0"),
  "audit-log-maxbackup": int("rotated files that stay (0: all)", "0"),
  "audit-log-maxage": int("days for which rotated files stay (0: forever)", "0"),
  "audit-log-compress": yesNo("compress rotated files"),
};

/** Names of the flags without effect that were given, each with the reason. */
export function ignoredFlags(flags: FlagValues): readonly (readonly [string, string])[] {
  return Object.entries(UNUSED_FLAGS)
    .filter(([name]) => flags.isSet(name))
    .map(([name, { doc }]) => [name, doc] as const);
}

/** All flags, in the order of --help. */
export const API_SERVER_FLAGS: Flags = {
  ...storage,
  ...serving,
  ...identity,
  ...limits,
  ...audit,
  ...UNUSED_FLAGS,
  ...REFUSED_FLAGS,
};
