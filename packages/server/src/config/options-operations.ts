/** The options for those who run a member: metrics, logs, traces, checks, and the unsafe ones. */
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

const monitoring = "Profiling and Monitoring";
const logging = "Logging";
const tracing = "Distributed tracing";
const features = "Features";
const unsafe = "Unsafe features";
const noRotation = planned("log files are not rotated by the server yet; let logrotate do it");

export const operationsOptions = {
  "enable-pprof": boolOption(false, {
    group: monitoring,
    doc: "Serve Go's profiles under /debug/pprof/.",
    stage: pointless(
      "profiles of Go programs do not exist here; start with --cpu-prof or --inspect in NODE_OPTIONS instead",
    ),
  }),
  metrics: stringOption(
    "basic",
    {
      group: monitoring,
      doc: "How much /metrics tells: 'extensive' adds histograms of the time that calls take.",
    },
    ["basic", "extensive"],
  ),
  "listen-metrics-urls": urlsOption("", {
    group: monitoring,
    doc:
      "Comma-separated URLs to listen on for /metrics and the health endpoints alone. For https the client " +
      "certificate and key are used.",
  }),

  logger: stringOption(
    "zap",
    {
      group: logging,
      doc: "Kept for etcd's sake: 'zap' means structured logs, the only kind there is.",
    },
    ["zap"],
  ),
  "log-outputs": listOption(
    "default",
    {
      group: logging,
      doc: "Where logs go: 'default' and 'stderr' (standard error), 'stdout', 'systemd/journal', or paths of files; comma-separated.",
    },
    true,
  ),
  "log-level": stringOption("info", { group: logging, doc: "The lowest level that is logged." }, [
    "debug",
    "info",
    "warn",
    "error",
    "dpanic",
    "panic",
    "fatal",
  ]),
  "log-format": stringOption(
    "json",
    {
      group: logging,
      doc: "'json' for one JSON object a line, 'console' for people.",
      defaultDoc: "json, console on a terminal",
    },
    ["json", "console"],
  ),
  "enable-log-rotation": boolOption(false, {
    group: logging,
    doc: "Start a new log file when the present one is full. Needs one file in --log-outputs.",
    stage: noRotation,
  }),
  "log-rotation-config-json": stringOption(
    '{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}',
    {
      group: logging,
      doc:
        "How logs rotate: maxsize in MB, maxage in days, maxbackups in files (0 for no limit), localtime in the names, " +
        "compress with gzip.",
      stage: noRotation,
    },
  ),
  "warning-unary-request-duration": durationOption(300, {
    group: logging,
    doc: "A call with one answer that takes longer than this is logged as a warning.",
    aliases: ["experimental-warning-unary-request-duration"],
  }),

  "enable-distributed-tracing": boolOption(false, {
    group: tracing,
    doc: "Send traces of calls to a collector (OpenTelemetry).",
    aliases: ["experimental-enable-distributed-tracing"],
  }),
  "distributed-tracing-address": stringOption("localhost:4317", {
    group: tracing,
    doc: "The collector's host and port, for OTLP over gRPC without TLS.",
    aliases: ["experimental-distributed-tracing-address"],
  }),
  "distributed-tracing-service-name": stringOption("etcd", {
    group: tracing,
    doc: "The service name in traces, the same on all members.",
    aliases: ["experimental-distributed-tracing-service-name"],
  }),
  "distributed-tracing-instance-id": stringOption("", {
    group: tracing,
    doc: "The instance id in traces, different on each member.",
    aliases: ["experimental-distributed-tracing-instance-id"],
  }),
  "distributed-tracing-sampling-rate": intOption(0, {
    group: tracing,
    unit: "per million",
    doc: "How many of a million calls are traced, of those whose caller does not say (traceparent).",
    aliases: ["experimental-distributed-tracing-sampling-rate"],
  }),

  "corrupt-check-time": durationOption(0, {
    group: features,
    doc: "How often the members' data are compared (0s turns it off).",
    aliases: ["experimental-corrupt-check-time"],
  }),
  "compact-hash-check-time": durationOption(60_000, {
    group: features,
    doc: "How often the leader looks whether there is compacted history to compare. Needs the feature gate CompactHashCheck.",
    aliases: ["experimental-compact-hash-check-time"],
  }),
  "self-heal": boolOption(false, {
    group: features,
    doc:
      "A member whose data differs from that of a majority serves no more reads, fetches the leader's store in the place of its own, " +
      "and ends the CORRUPT alarm when it is like the others.",
  }),
  "compaction-batch-limit": intOption(0, {
    group: features,
    unit: "revisions",
    doc: "How many revisions one step of a compaction removes (0 means 1000).",
    aliases: ["experimental-compaction-batch-limit"],
  }),
  "compaction-sleep-interval": durationOption(0, {
    group: features,
    doc: "How long a compaction rests between two steps (0s means 10ms).",
    aliases: ["experimental-compaction-sleep-interval"],
  }),
  "watch-progress-notify-interval": durationOption(0, {
    group: features,
    doc: "How often a quiet watch that asked for it is told the present revision (0s means 10m).",
    aliases: ["experimental-watch-progress-notify-interval"],
  }),
  "warning-apply-duration": durationOption(100, {
    group: features,
    doc: "A request whose application to the store takes longer than this is logged as a warning.",
    aliases: ["experimental-warning-apply-duration"],
  }),
  "slow-fsync-handover": durationOption(100, {
    group: features,
    doc:
      "A leader whose log's fsyncs take longer than this, while enough others to make a majority without it have the same entries on " +
      "disk sooner, hands leadership to one of them, at most once in five minutes (0s turns it off). Not in etcd.",
  }),
  "bootstrap-defrag-threshold-megabytes": uintOption(0, {
    group: features,
    unit: "MB",
    doc: "Defragment the store at start if that frees at least this much (0 turns it off).",
    aliases: ["experimental-bootstrap-defrag-threshold-megabytes"],
    stage: pointless("LevelDB gives free space back by itself while it runs"),
  }),
  "max-learners": intOption(1, {
    group: features,
    unit: "members",
    doc: "How many members may be learners at once.",
    aliases: ["experimental-max-learners"],
  }),
  "downgrade-check-time": durationOption(5000, {
    group: features,
    doc: "How often a member looks whether a downgrade of the cluster has been ordered or finished.",
    aliases: ["experimental-downgrade-check-time"],
    stage: planned("downgrades of the cluster version are not there yet"),
  }),
  "snapshot-catchup-entries": uintOption(5000, {
    group: features,
    unit: "entries",
    doc: "How many entries before a snapshot stay in memory, so that a member that is a little behind needs no snapshot.",
    aliases: ["experimental-snapshot-catch-up-entries"],
  }),

  "force-new-cluster": boolOption(false, {
    group: unsafe,
    doc: "Make a new cluster with this member alone out of the data that it has. For a member whose others are lost; give it once.",
  }),
  "unsafe-no-fsync": boolOption(false, {
    group: unsafe,
    doc: "Do not wait for the disk. A crash loses acknowledged writes.",
    stage: planned("the server always waits for the disk for now"),
  }),
};
