/**
 * The options of one member: who it is, where its data is, how often it speaks, what it lets
 * clients do.
 */
import {
  boolOption,
  durationOption,
  intOption,
  listOption,
  planned,
  pointless,
  stringOption,
  uintOption,
  urlsOption,
} from "./option.ts";

const group = "Member";

export const memberOptions = {
  name: stringOption("default", {
    group,
    doc: "The member's name, for people and for --initial-cluster. Give each member its own.",
  }),
  "data-dir": stringOption("", {
    group,
    doc: "The folder that holds all of the member's data. It is made if it is not there.",
    defaultDoc: "NAME.quorate",
  }),
  "wal-dir": stringOption("", {
    group,
    doc: "A folder for the write-ahead log alone, where that should be on a disk of its own.",
    defaultDoc: "member/wal in the data directory",
  }),
  "snapshot-count": uintOption(10_000, {
    group,
    unit: "entries",
    doc: "How many entries are applied between two snapshots. A snapshot lets the log before it go.",
  }),
  "heartbeat-interval": uintOption(100, {
    group,
    unit: "ms",
    doc: "How often a leader tells the others that it is there. About one round trip between members is right.",
  }),
  "election-timeout": uintOption(1000, {
    group,
    unit: "ms",
    doc:
      "How long a member waits for a leader before it stands for election. At least 5 heartbeat intervals and at " +
      "most 50000; the same on all members.",
  }),
  "initial-election-tick-advance": boolOption(true, {
    group,
    doc: "Spend most of the first election timeout at once when the member starts, so that a cluster that is starting has a leader sooner.",
    stage: planned("a starting member waits for its whole first election timeout for now"),
  }),
  "listen-peer-urls": urlsOption("http://localhost:2380", {
    group,
    doc: "Comma-separated URLs to listen on for other members. Addresses, not names.",
  }),
  "listen-client-urls": urlsOption("http://localhost:2379", {
    group,
    doc:
      "Comma-separated URLs to listen on for clients: gRPC, and HTTP as well unless --listen-client-http-urls is " +
      "given. Addresses, not names.",
  }),
  "listen-client-http-urls": urlsOption("", {
    group,
    doc: "Comma-separated URLs to listen on for HTTP alone. If it is given, --listen-client-urls serves gRPC alone.",
  }),
  "max-wals": uintOption(5, {
    group,
    unit: "files",
    doc: "How many write-ahead log files to keep that no snapshot needs any more (0 keeps all).",
  }),
  "memory-mlock": boolOption(false, {
    group,
    doc: "Lock the process's memory so that it is never swapped out.",
    aliases: ["experimental-memory-mlock"],
    stage: pointless(
      "the JavaScript heap cannot be locked into memory; turn swap off, or set MemorySwapMax=0 in the service's unit",
    ),
  }),
  "quota-backend-bytes": intOption(0, {
    group,
    unit: "bytes",
    doc:
      "How many bytes of live records (history that is not compacted, and leases) the store may hold before the member raises the " +
      "NOSPACE alarm and the cluster takes no more writes. 0 means 2 GiB; a negative number means no limit. Not advised above 8 GiB.",
  }),
  "quota-auto-disarm": boolOption(true, {
    group,
    doc: "End a NOSPACE alarm without an operator once a compaction has brought the live records below 80% of the quota.",
  }),
  "backend-bbolt-freelist-type": stringOption("map", {
    group,
    doc: "How bbolt keeps its list of free pages.",
    stage: pointless("the store is LevelDB, which has no list of free pages"),
  }),
  "backend-batch-interval": durationOption(0, {
    group,
    doc:
      "How long changes collect in memory before they are written to the store as one batch (0s means 100ms). The " +
      "write-ahead log is not affected.",
  }),
  "backend-batch-limit": intOption(0, {
    group,
    unit: "operations",
    doc: "How many changes collect in memory before they are written to the store as one batch (0 means 10000).",
    stage: planned("the store writes a batch every 10000 changes at the latest for now"),
  }),
  "max-txn-ops": uintOption(128, {
    group,
    unit: "operations",
    doc: "How many operations one transaction may have.",
  }),
  "max-request-bytes": uintOption(1_572_864, {
    group,
    unit: "bytes",
    doc: "How big a client's request may be. More than 10 MiB is not advised.",
  }),
  "max-concurrent-streams": uintOption(
    4_294_967_295,
    {
      group,
      unit: "streams",
      doc: "How many calls a client may have open at once on one connection.",
    },
    4_294_967_295,
  ),
  "grpc-keepalive-min-time": durationOption(5000, {
    group,
    doc: "The shortest time between a client's pings; a client that pings more often is disconnected.",
  }),
  "grpc-keepalive-interval": durationOption(7_200_000, {
    group,
    doc: "How often the server pings a silent client connection to see whether it is alive (0s turns it off).",
  }),
  "grpc-keepalive-timeout": durationOption(20_000, {
    group,
    doc: "How long the server waits for the answer to such a ping before it closes the connection (0s turns it off).",
  }),
  "socket-reuse-port": boolOption(false, {
    group,
    doc: "Set SO_REUSEPORT on listeners, so that another process may listen on the same port.",
    fileKey: "socket-options.reuse-port",
    stage: planned("listeners do not share ports yet"),
  }),
  "socket-reuse-address": boolOption(false, {
    group,
    doc: "Set SO_REUSEADDR on listeners, so that a port in TIME_WAIT can be bound.",
    fileKey: "socket-options.reuse-address",
    stage: pointless("listeners always have SO_REUSEADDR here"),
  }),
  "enable-grpc-gateway": boolOption(true, {
    group,
    doc: "Serve the v3 API as JSON over HTTP under /v3/.",
    stage: planned("the JSON gateway is not there yet, so it is off in any case"),
  }),
  "raft-read-timeout": durationOption(5000, {
    group,
    doc: "How long a connection between members may stay silent before it is given up. At least 5s.",
    stage: planned("connections between members have fixed timeouts for now"),
  }),
  "raft-write-timeout": durationOption(5000, {
    group,
    doc: "How long a write to another member may stand still before its connection is given up. At least 5s.",
    stage: planned("connections between members have fixed timeouts for now"),
  }),
  "feature-gates": listOption("", {
    group,
    doc: "Comma-separated Name=true or Name=false for features in trial.",
    stage: { kind: "effective" },
  }),
};
