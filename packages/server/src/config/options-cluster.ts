/**
 * The options that say which cluster a member belongs to, how it is formed, and what Raft may do.
 */
import {
  boolOption,
  durationOption,
  listOption,
  planned,
  pointless,
  refused,
  stringOption,
  urlsOption,
} from "./option.ts";

const group = "Clustering";
const discovery = refused(
  "forming a cluster by a discovery service is not there yet; list the members in --initial-cluster, or give --discovery-srv",
);
const discoveryDetail = planned("forming a cluster by a discovery service is not there yet");

export const clusterOptions = {
  "initial-advertise-peer-urls": urlsOption("http://localhost:2380", {
    group,
    doc: "Comma-separated URLs under which the other members reach this one.",
  }),
  "initial-cluster": stringOption("", {
    group,
    doc: "The members that form the cluster, as comma-separated name=peer-URL pairs; a member with several URLs comes several times.",
    defaultDoc: "NAME=INITIAL-ADVERTISE-PEER-URLS",
  }),
  "initial-cluster-state": stringOption(
    "new",
    {
      group,
      doc: "'new' to form a cluster, 'existing' to join one. Looked at only at a member's first start.",
    },
    ["new", "existing"],
  ),
  "initial-cluster-token": stringOption("etcd-cluster", {
    group,
    doc: "A text that goes into the cluster's and the members' ids, so that clusters with equal URLs do not mix.",
  }),
  "advertise-client-urls": urlsOption("http://localhost:2379", {
    group,
    doc: "Comma-separated URLs under which clients reach this member. Required when --listen-client-urls is given.",
  }),
  discovery: stringOption("", {
    group,
    doc: "Discovery: the URL of a v2 discovery service. etcd has no such services any more.",
    stage: refused(
      "the v2 discovery service is gone since etcd 3.6; list the members in --initial-cluster",
    ),
  }),
  "discovery-token": stringOption("", {
    group,
    doc: "Discovery: the token of the cluster to form.",
    stage: discovery,
    fileKey: "discovery-config.token",
  }),
  "discovery-endpoints": listOption(
    "",
    {
      group,
      doc: "Discovery: comma-separated endpoints of the discovery service.",
      stage: discovery,
      fileKey: "discovery-config.client.endpoints",
    },
    true,
  ),
  "discovery-dial-timeout": durationOption(2000, {
    group,
    doc: "Discovery: how long to wait for a connection.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.dial-timeout",
  }),
  "discovery-request-timeout": durationOption(5000, {
    group,
    doc: "Discovery: how long to wait for an answer.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.request-timeout",
  }),
  "discovery-keepalive-time": durationOption(2000, {
    group,
    doc: "Discovery: time between pings of a silent connection.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.keepalive-time",
  }),
  "discovery-keepalive-timeout": durationOption(6000, {
    group,
    doc: "Discovery: how long to wait for a ping's answer.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.keepalive-timeout",
  }),
  "discovery-insecure-transport": boolOption(true, {
    group,
    doc: "Discovery: connect without TLS.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.secure.insecure-transport",
  }),
  "discovery-insecure-skip-tls-verify": boolOption(false, {
    group,
    doc: "Discovery: accept any server certificate (tests only).",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.secure.insecure-skip-tls-verify",
  }),
  "discovery-cert": stringOption("", {
    group,
    doc: "Discovery: the client certificate to show.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.secure.cert",
  }),
  "discovery-key": stringOption("", {
    group,
    doc: "Discovery: the client certificate's key.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.secure.key",
  }),
  "discovery-cacert": stringOption("", {
    group,
    doc: "Discovery: the CA that the service's certificate must come from.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.secure.cacert",
  }),
  "discovery-user": stringOption("", {
    group,
    doc: "Discovery: user name, or name:password.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.auth.username",
  }),
  "discovery-password": stringOption("", {
    group,
    doc: "Discovery: password, where --discovery-user has none.",
    stage: discoveryDetail,
    fileKey: "discovery-config.client.auth.password",
  }),
  "discovery-fallback": stringOption(
    "exit",
    {
      group,
      doc: "Discovery: what to do when it fails: 'exit', the only way that is left.",
      stage: pointless(
        "the v2 proxy is gone since etcd 3.6, so a discovery that fails ends the start",
      ),
    },
    ["exit", "proxy"],
  ),
  "discovery-srv": stringOption("", {
    group,
    doc: "A DNS domain whose SRV records (_etcd-server-ssl._tcp and _etcd-server._tcp) name the members, in place of --initial-cluster.",
  }),
  "discovery-srv-name": stringOption("", {
    group,
    doc: "A suffix to the service name that is asked for in the DNS.",
  }),
  "auto-promote": boolOption(false, {
    group,
    doc: "A learner started with it asks the leader to make it a voter as soon as it has caught up. Not in etcd.",
  }),
  "strict-reconfig-check": boolOption(true, {
    group,
    doc: "Refuse changes of the membership that would leave the cluster without a quorum.",
  }),
  "pre-vote": boolOption(true, {
    group,
    doc: "Ask the others before standing for election, so that a member that comes back from a partition does not unseat a leader.",
  }),
  "auto-compaction-mode": stringOption(
    "periodic",
    {
      group,
      doc: "How --auto-compaction-retention is read: 'periodic' as a time, 'revision' as a number of revisions.",
    },
    ["periodic", "revision"],
  ),
  "auto-compaction-retention": stringOption("0", {
    group,
    doc:
      "How much history automatic compaction keeps: a duration (a bare number counts hours) or, in revision mode, a " +
      "number. 0 turns it off.",
  }),
};
