/** The flags of `quorate apiserver`: kube-apiserver's names where it has the option. */
import type { Flags, FlagValues } from "@quorate/cli";
import { boolFlag, durationFlag, intFlag, listFlag, textFlag } from "@quorate/cli";
import { unusedGates } from "./feature-gates.ts";
import { REFUSED_FLAGS, UNUSED_FLAGS } from "./unused-flags.ts";

const storage: Flags = {
  version: boolFlag("print the version of the API, and end"),
  "data-dir": textFlag(
    "directory for certificates, the admin's kubeconfig, and the embedded member's data",
    "default.apiserver",
  ),
  embedded: boolFlag("keep objects with a member in this process; implied without --etcd-servers"),
  "etcd-servers": listFlag("endpoints of the cluster that holds the objects"),
  "etcd-servers-overrides": listFlag(
    "clusters of single resources, by commas: group/resource#server;server, such as /events#https://host:2379",
  ),
  "etcd-cafile": textFlag("CA that verifies the cluster's certificates"),
  "etcd-certfile": textFlag("client certificate for the cluster"),
  "etcd-keyfile": textFlag("key of that certificate"),
  "etcd-prefix": textFlag("prefix of all keys in the cluster", "/registry"),
  "etcd-compaction-interval": durationFlag(
    "interval of compactions (0: none by this server)",
    "5m0s",
  ),
  "storage-media-type": textFlag(
    "encoding of built-in kinds in the cluster: application/vnd.kubernetes.protobuf or application/json",
    "application/vnd.kubernetes.protobuf",
  ),
  "watch-cache": boolFlag("keep objects in memory, for reads and watches", "true"),
  "event-ttl": durationFlag("how long events are kept", "1h0m0s"),
  "encryption-provider-config": textFlag("file with the keys that encrypt objects at rest"),
  "encryption-provider-config-automatic-reload": boolFlag("follow changes of that file"),
};

const serving: Flags = {
  "bind-address": textFlag("address to listen on", "127.0.0.1"),
  "secure-port": intFlag("port to listen on; 0 for a free one", "6443"),
  "advertise-address": textFlag(
    "another address by which clients reach the server; in the Endpoints kubernetes",
  ),
  "service-cluster-ip-range": listFlag(
    "range of the addresses of services, or two of different families; the Service kubernetes has the first address",
    "10.0.0.0/24",
  ),
  "service-node-port-range": textFlag("range of the ports of nodes of services", "30000-32767"),
  "external-hostname": textFlag("another host name by which clients reach the server"),
  "tls-cert-file": textFlag("certificate that clients see; by default one made in --data-dir"),
  "tls-private-key-file": textFlag("key of that certificate"),
  "cert-dir": textFlag(
    "directory with apiserver.crt and apiserver.key, which are used if they are there; --data-dir is then quorate in it by default",
  ),
  "kubeconfig-out": textFlag(
    "file for the admin's kubeconfig (default: admin.kubeconfig in --data-dir)",
  ),
};

const identity: Flags = {
  "client-ca-file": textFlag("CA of client certificates; by default the one made in --data-dir"),
  "proxy-client-cert-file": textFlag(
    "certificate that other API servers (APIService) are shown; by default one made in --data-dir",
  ),
  "proxy-client-key-file": textFlag("key of that certificate"),
  "requestheader-client-ca-file": textFlag(
    "CA of that certificate, for other API servers to know; and of proxies before this one, whose headers say who asks",
  ),
  "requestheader-allowed-names": listFlag("names in those certificates; empty for any"),
  "requestheader-username-headers": listFlag("headers with a user's name", "X-Remote-User"),
  "requestheader-uid-headers": listFlag("headers with a user's uid", "X-Remote-Uid"),
  "requestheader-group-headers": listFlag("headers with a user's groups", "X-Remote-Group"),
  "requestheader-extra-headers-prefix": listFlag(
    "beginnings of headers with more about a user",
    "X-Remote-Extra-",
  ),
  "enable-aggregator-routing": boolFlag(
    "requests go on to endpoints of the services of other API servers, not to their addresses",
  ),
  "token-auth-file": textFlag('CSV file with static tokens: token,user,uid,"group1,group2"'),
  "oidc-issuer-url": textFlag("https URL of an OpenID Connect provider, whose ID tokens are taken"),
  "oidc-client-id": textFlag("what its tokens must be made for (aud)"),
  "oidc-username-claim": textFlag("claim that is the user's name", "sub"),
  "oidc-username-prefix": textFlag(
    "before the name; by default URL#, or none for email; - for none",
  ),
  "oidc-groups-claim": textFlag("claim that has the user's groups"),
  "oidc-groups-prefix": textFlag("before each group"),
  "oidc-required-claim": listFlag("claims that must be there: name=value"),
  "oidc-signing-algs": listFlag("algorithms of signatures that are taken", "RS256"),
  "oidc-ca-file": textFlag("CA that the provider's certificate is verified with"),
  "authentication-token-webhook-config-file": textFlag(
    "kubeconfig of a webhook that knows tokens (TokenReview)",
  ),
  "authentication-token-webhook-version": textFlag(
    "version of its TokenReview: v1 or v1beta1",
    "v1beta1",
  ),
  "authentication-token-webhook-cache-ttl": durationFlag(
    "how long what it says is remembered",
    "2m0s",
  ),
  "anonymous-auth": boolFlag("serve requests without credentials as system:anonymous", "true"),
  "authorization-mode": listFlag(
    "authorizers in order: RBAC, Webhook, AlwaysAllow, AlwaysDeny",
    "RBAC",
  ),
  "authorization-webhook-config-file": textFlag(
    "kubeconfig of a webhook that says who may do what (SubjectAccessReview)",
  ),
  "authorization-webhook-version": textFlag(
    "version of its SubjectAccessReview: v1 or v1beta1",
    "v1beta1",
  ),
  "authorization-webhook-cache-authorized-ttl": durationFlag(
    "how long what it allows is remembered",
    "5m0s",
  ),
  "authorization-webhook-cache-unauthorized-ttl": durationFlag(
    "how long what it refuses is remembered",
    "30s",
  ),
  "enable-admission-plugins": listFlag("admission besides the standard one, by plug-in names"),
  "disable-admission-plugins": listFlag(
    "plug-ins that are not to run, where they are not always on",
  ),
  controllers: listFlag(
    "controllers that run here, by kube-controller-manager's names: * for all, name or -name for one; empty for none, as with envtest",
    "*",
  ),
  "service-account-issuer": listFlag(
    "issuers of service account tokens; the first one signs",
    "https://kubernetes.default.svc.cluster.local",
  ),
  "service-account-signing-key-file": textFlag("key that signs them; by default one in --data-dir"),
  "service-account-key-file": listFlag("more keys whose tokens are accepted"),
  "service-account-max-token-expiration": durationFlag("bound of their lifetime (0: none)", "0s"),
  "api-audiences": listFlag("audiences of the server's tokens (default: the issuers)"),
};

const limits: Flags = {
  "max-requests-inflight": intFlag("reads in flight at a time; the sum of both is shared", "400"),
  "max-mutating-requests-inflight": intFlag("writes in flight at a time", "200"),
  "request-timeout": durationFlag("the longest time of a request that is no watch", "1m0s"),
  "min-request-timeout": intFlag(
    "seconds after which a watch ends, or up to twice as many",
    "1800",
  ),
  "feature-gates": listFlag(
    "Name=true or false: ShardedListAndWatch (lists of shards), EtcdRangeStream (streams from the cluster), AllAlpha, AllBeta",
  ),
  chaos: textFlag(
    "faults by seed, for tests of controllers: seed=7,stale-lists=0.3,watch-delay=0.5:2s,gone=0.1,cuts=0.1,agent=NAME",
  ),
  "webhook-service": listFlag(
    "where services of webhooks and of other API servers are: name.namespace=host:port",
  ),
  "shutdown-delay-duration": durationFlag("how long /readyz fails before the server stops", "0s"),
  "log-level": {
    ...textFlag("lowest level that is logged: debug, info, warn, error", "info"),
    values: ["debug", "info", "warn", "error"],
  },
};

const audit: Flags = {
  "audit-policy-file": textFlag("file with the rules which requests are recorded"),
  "audit-log-path": textFlag("file for the records of requests; - for standard output"),
  "audit-log-format": textFlag("json, or legacy for short texts", "json"),
  "audit-log-mode": textFlag(
    "batch or blocking: records are written behind requests; blocking-strict: requests are refused while records cannot be written",
    "blocking",
  ),
  "audit-log-maxsize": intFlag("MiB at which the file is rotated (0: 100)", "0"),
  "audit-log-maxbackup": intFlag("rotated files that stay (0: all)", "0"),
  "audit-log-maxage": intFlag("days for which rotated files stay (0: forever)", "0"),
  "audit-log-compress": boolFlag("compress rotated files"),
};

/** Names of the flags and feature gates without effect that were given, each with the reason. */
export function ignoredFlags(flags: FlagValues): readonly (readonly [string, string])[] {
  const gates = unusedGates(flags.strings("feature-gates"));
  return [
    ...Object.entries(UNUSED_FLAGS)
      .filter(([name]) => flags.isSet(name))
      .map(([name, { doc }]) => [name, doc] as const),
    ...gates.map((name) => [`feature-gates=${name}`, "no effect: no such gate here"] as const),
  ];
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
