/**
 * The options that say which cluster a member belongs to, how it is formed, and what Raft may do.
 */
import {
  boolOption,
  durationOption,
  listOption,
  refused,
  stringOption,
  urlsOption,
} from "./option.ts";

export const clusterOptions = {
  "initial-advertise-peer-urls": urlsOption(
    "http://localhost:2380",
    "Comma-separated URLs at which other members reach this member.",
  ),
  "initial-cluster": stringOption(
    "",
    "Members of the new cluster: comma-separated name=peer-URL pairs. Repeat the name for " +
      "a member with several URLs.",
    { defaultDoc: "NAME=INITIAL-ADVERTISE-PEER-URLS" },
  ),
  "initial-cluster-state": stringOption(
    "new",
    "'new' to form a cluster, 'existing' to join one. Used only at the member's first " + "start.",
    { allowed: ["new", "existing"] },
  ),
  "initial-cluster-token": stringOption(
    "etcd-cluster",
    "Token from which the ids of the cluster and its members are derived. Use a different " +
      "one for each cluster.",
  ),
  "advertise-client-urls": urlsOption(
    "http://localhost:2379",
    "Comma-separated URLs at which clients reach this member. Required with " +
      "--listen-client-urls.",
  ),
  discovery: stringOption("", "URL of a v2 discovery service.", {
    stage: refused("etcd removed the v2 discovery service in 3.6; use --initial-cluster"),
  }),
  "discovery-token": stringOption("", "Discovery service: token of the cluster to form.", {
    fileKey: "discovery-config.token",
  }),
  "discovery-endpoints": listOption("", "Discovery service: comma-separated endpoints.", {
    fileKey: "discovery-config.client.endpoints",
    unique: true,
  }),
  "discovery-dial-timeout": durationOption(2000, "Discovery service: connection timeout.", {
    fileKey: "discovery-config.client.dial-timeout",
  }),
  "discovery-request-timeout": durationOption(5000, "Discovery service: request timeout.", {
    fileKey: "discovery-config.client.request-timeout",
  }),
  "discovery-keepalive-time": durationOption(
    2000,
    "Discovery service: interval between keepalive pings.",
    { fileKey: "discovery-config.client.keepalive-time" },
  ),
  "discovery-keepalive-timeout": durationOption(
    6000,
    "Discovery service: time to wait for the response to a ping.",
    { fileKey: "discovery-config.client.keepalive-timeout" },
  ),
  "discovery-insecure-transport": boolOption(true, "Discovery service: connect without TLS.", {
    fileKey: "discovery-config.client.secure.insecure-transport",
  }),
  "discovery-insecure-skip-tls-verify": boolOption(
    false,
    "Discovery service: do not verify its certificate. For tests only.",
    { fileKey: "discovery-config.client.secure.insecure-skip-tls-verify" },
  ),
  "discovery-cert": stringOption("", "Discovery service: client certificate file.", {
    fileKey: "discovery-config.client.secure.cert",
  }),
  "discovery-key": stringOption("", "Discovery service: key file of the client certificate.", {
    fileKey: "discovery-config.client.secure.key",
  }),
  "discovery-cacert": stringOption(
    "",
    "Discovery service: CA file that verifies its certificate.",
    { fileKey: "discovery-config.client.secure.cacert" },
  ),
  "discovery-user": stringOption("", "Discovery service: user name, or name:password.", {
    fileKey: "discovery-config.client.auth.username",
  }),
  "discovery-password": stringOption(
    "",
    "Discovery service: password, if --discovery-user contains none.",
    { fileKey: "discovery-config.client.auth.password" },
  ),
  "discovery-fallback": stringOption(
    "exit",
    "Discovery service: action on failure, which is 'exit'; 'proxy', of etcd before 3.6, " +
      "means that too, with a warning.",
    { allowed: ["exit", "proxy"] },
  ),
  "discovery-srv": stringOption(
    "",
    "DNS domain whose SRV records (_etcd-server-ssl._tcp, _etcd-server._tcp) list the " +
      "members, instead of --initial-cluster.",
  ),
  "discovery-srv-name": stringOption("", "Suffix of the service name in the SRV query."),
  "auto-promote": boolOption(
    false,
    "If this member is a learner, ask the leader to make it a voter as soon as it has " +
      "caught up. Not in etcd.",
    { field: "autoPromote" },
  ),
  "strict-reconfig-check": boolOption(
    true,
    "Refuse membership changes that would cost the cluster its quorum.",
    { field: "strictReconfigCheck" },
  ),
  "pre-vote": boolOption(
    true,
    "Before an election, check that a majority would vote for this member. Prevents " +
      "needless elections when a member returns from a partition.",
    { field: "preVote" },
  ),
  "auto-compaction-mode": stringOption(
    "periodic",
    "Unit of --auto-compaction-retention: 'periodic' (a duration) or 'revision' (a number " +
      "of revisions).",
    { allowed: ["periodic", "revision"] },
  ),
  "auto-compaction-retention": stringOption(
    "0",
    "History that automatic compaction keeps: a duration (a number without a unit means " +
      "hours), or a number of revisions. 0 turns automatic compaction off.",
  ),
};
