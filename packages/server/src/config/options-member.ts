/**
 * The options of one member: who it is, where its data is, how often it speaks, what it lets
 * clients do.
 */
import {
  boolOption,
  durationOption,
  intOption,
  listOption,
  pointless,
  stringOption,
  uintOption,
  urlsOption,
} from "./option.ts";

export const memberOptions = {
  name: stringOption(
    "default",
    "Name of the member in --initial-cluster and in logs. Must differ between members.",
    { field: "name" },
  ),
  "data-dir": stringOption("", "Directory for all data of the member. Created if missing.", {
    defaultDoc: "NAME.quorate",
  }),
  "wal-dir": stringOption(
    "",
    "Directory for the write-ahead log, for example on a disk of its own.",
    { defaultDoc: "member/wal in the data directory" },
  ),
  "snapshot-count": uintOption(
    10_000,
    "Number of applied entries after which the member writes a snapshot and truncates the " +
      "log.",
    { field: "snapshotCount", unit: "entries" },
  ),
  "heartbeat-interval": uintOption(
    100,
    "Interval between heartbeats of the leader. Should be about one round trip between " +
      "members.",
    { field: "heartbeatIntervalMs", unit: "ms" },
  ),
  "election-timeout": uintOption(
    1000,
    "Time without a heartbeat after which a follower starts an election. At least 5 " +
      "heartbeat intervals, at most 50000. Must be the same on all members.",
    { field: "electionTimeoutMs", unit: "ms" },
  ),
  "initial-election-tick-advance": boolOption(
    true,
    "Shorten the first election timeout after a start, so that a new cluster elects a " +
      "leader sooner.",
    { field: "initialElectionTickAdvance" },
  ),
  "listen-peer-urls": urlsOption(
    "http://localhost:2380",
    "Comma-separated URLs to listen on for other members. Hosts are IP addresses or " +
      "localhost.",
    { field: "listenPeerUrls" },
  ),
  "listen-client-urls": urlsOption(
    "http://localhost:2379",
    "Comma-separated URLs to listen on for clients. Hosts are IP addresses or localhost. " +
      "Serves gRPC, and HTTP too unless --listen-client-http-urls is set. An address may be " +
      "listed with http and with https.",
    { field: "listenClientUrls" },
  ),
  "listen-client-http-urls": urlsOption(
    "",
    "Comma-separated URLs to listen on for HTTP only. If set, --listen-client-urls serves " +
      "gRPC only.",
    { field: "listenClientHttpUrls" },
  ),
  "max-wals": uintOption(5, "Maximum number of old write-ahead log files to keep (0: unlimited).", {
    field: "maxWalFiles",
    unit: "files",
  }),
  "memory-mlock": boolOption(
    false,
    "Lock the memory of the process, so that it is never swapped out.",
    {
      aliases: ["experimental-memory-mlock"],
      stage: pointless(
        "the JavaScript heap cannot be locked; turn swap off, or set MemorySwapMax=0 in the systemd unit",
      ),
    },
  ),
  "quota-backend-bytes": intOption(
    0,
    "Maximum size of live records: keys with their uncompacted history, and leases. At the " +
      "quota the member raises the NOSPACE alarm and the cluster refuses writes. 0 means 2 " +
      "GiB; a negative value disables the quota. Recommended maximum: 8 GiB.",
    { unit: "bytes" },
  ),
  "quota-auto-disarm": boolOption(
    true,
    "Clear a NOSPACE alarm automatically when compaction has brought live records below " +
      "80% of the quota. Not in etcd.",
    { field: "quotaAutoDisarm" },
  ),
  "backend-bbolt-freelist-type": stringOption("map", "Type of bbolt's list of free pages.", {
    stage: pointless("the store is LevelDB, which has no free pages"),
  }),
  "backend-batch-interval": durationOption(
    0,
    "Maximum time before changes in memory are written to the store as one batch (0s means " +
      "100ms). Does not affect the write-ahead log.",
    { field: "backendBatchIntervalMs", zeroMeans: 100 },
  ),
  "backend-batch-limit": intOption(
    0,
    "Maximum number of changes in one batch to the store (0 means 10000).",
    { field: "backendBatchLimit", zeroMeans: 10_000, unit: "operations" },
  ),
  "max-txn-ops": uintOption(128, "Maximum number of operations in a transaction.", {
    field: "maxTxnOps",
    unit: "operations",
  }),
  "max-request-bytes": uintOption(
    1_572_864,
    "Maximum size of a client's request. Recommended maximum: 10 MiB.",
    { field: "maxRequestBytes", unit: "bytes" },
  ),
  "max-concurrent-streams": uintOption(
    4_294_967_295,
    "Maximum number of concurrent calls on a client connection.",
    { field: "maxConcurrentStreams", unit: "streams", max: 4_294_967_295 },
  ),
  "grpc-keepalive-min-time": durationOption(
    5000,
    "Minimum interval between pings of a client. The server disconnects clients that ping " +
      "more often.",
  ),
  "grpc-keepalive-interval": durationOption(
    7_200_000,
    "Interval after which the server pings an idle client connection (0s: never).",
  ),
  "grpc-keepalive-timeout": durationOption(
    20_000,
    "Time the server waits for the response to a ping before it closes the connection (0s: " +
      "no limit).",
  ),
  "frontend-threads": stringOption(
    "0",
    "Threads that own client connections: TLS, HTTP, gRPC and JSON run there, and the " +
      "member's thread gets checked requests. A number, or auto: by the number of " +
      "processors. 0: the member's thread does it all.",
  ),
  "socket-reuse-port": boolOption(
    false,
    "Set SO_REUSEPORT on listeners, so that several processes can listen on one port.",
    { field: "socketReusePort", fileKey: "socket-options.reuse-port" },
  ),
  "socket-reuse-address": boolOption(
    false,
    "Set SO_REUSEADDR on listeners, so that a port in TIME_WAIT can be used.",
    { fileKey: "socket-options.reuse-address", stage: pointless("SO_REUSEADDR is always set") },
  ),
  "enable-grpc-gateway": boolOption(true, "Serve the v3 API as JSON over HTTP under /v3/."),
  "enable-http-kv": boolOption(
    true,
    "Serve keys over HTTP under /kv/, /watch/ and /txn (docs/guide/http.md).",
  ),
  console: boolOption(
    false,
    "Serve a page that shows the cluster under /console/ (docs/operate/console.md). Needs " +
      "--enable-grpc-gateway.",
  ),
  "raft-read-timeout": durationOption(
    5000,
    "Time without any bytes from a peer after which the connection to it is closed. Values " +
      "below 5s count as 5s.",
  ),
  "raft-write-timeout": durationOption(
    5000,
    "Write timeout of connections between members. At least 5s.",
    {
      stage: pointless(
        "a peer that reads nothing answers no pings, so --raft-read-timeout closes the connection",
      ),
    },
  ),
  "feature-gates": listOption(
    "",
    "Comma-separated list of Name=true or Name=false for alpha and beta features.",
  ),
};
