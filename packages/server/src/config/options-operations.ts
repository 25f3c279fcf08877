/** The options for those who run a member: metrics, logs, traces, checks, and the unsafe ones. */
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

const monitoring = "Profiling and Monitoring";
const logging = "Logging";
const tracing = "Distributed tracing";
const features = "Features";
const unsafe = "Unsafe features";

export const operationsOptions = {
  "enable-pprof": boolOption(false, {
    group: monitoring,
    doc: "Serve Go profiles under /debug/pprof/.",
    stage: pointless("there are no Go profiles; set NODE_OPTIONS to --cpu-prof or --inspect"),
  }),
  metrics: stringOption(
    "basic",
    {
      group: monitoring,
      field: "metrics",
      doc:
        "Level of detail of /metrics: 'extensive' adds histograms of the duration of " + "calls.",
    },
    ["basic", "extensive"],
  ),
  "listen-metrics-urls": urlsOption("", {
    group: monitoring,
    field: "listenMetricsUrls",
    doc:
      "Comma-separated URLs to listen on for /metrics and health checks only. https " +
      "uses --cert-file and --key-file.",
  }),

  logger: stringOption(
    "zap",
    {
      group: logging,
      doc: "Type of logger. Only 'zap' (structured logs) is accepted.",
    },
    ["zap"],
  ),
  "log-outputs": listOption(
    "default",
    {
      group: logging,
      doc:
        "Comma-separated log destinations: 'default' or 'stderr', 'stdout', " +
        "'systemd/journal', or file paths.",
    },
    true,
  ),
  "log-level": stringOption("info", { group: logging, doc: "Minimum level of log messages." }, [
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
      doc: "'json' (one JSON object per line) or 'console' (text).",
      defaultDoc: "json, console on a terminal",
    },
    ["json", "console"],
  ),
  "enable-log-rotation": boolOption(false, {
    group: logging,
    doc: "Rotate the log file. Requires exactly one file in --log-outputs.",
  }),
  "log-rotation-config-json": stringOption(
    '{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}',
    {
      group: logging,
      doc:
        "Log rotation: maxsize in MB, maxage in days, maxbackups in files (0: unlimited), " +
        "localtime for local time in file names, compress for gzip.",
    },
  ),
  "warning-unary-request-duration": durationOption(300, {
    group: logging,
    field: "warningUnaryRequestDurationMs",
    zeroMeans: 300,
    doc: "Log a warning for a unary call that takes longer than this.",
    aliases: ["experimental-warning-unary-request-duration"],
  }),

  "enable-distributed-tracing": boolOption(false, {
    group: tracing,
    doc: "Send traces of calls to an OpenTelemetry collector.",
    aliases: ["experimental-enable-distributed-tracing"],
  }),
  "distributed-tracing-address": stringOption("localhost:4317", {
    group: tracing,
    doc: "Host and port of the collector (OTLP over gRPC, without TLS).",
    aliases: ["experimental-distributed-tracing-address"],
  }),
  "distributed-tracing-service-name": stringOption("etcd", {
    group: tracing,
    doc: "Service name in traces. Should be the same on all members.",
    aliases: ["experimental-distributed-tracing-service-name"],
  }),
  "distributed-tracing-instance-id": stringOption("", {
    group: tracing,
    doc: "Instance id in traces. Must differ between members.",
    aliases: ["experimental-distributed-tracing-instance-id"],
  }),
  "distributed-tracing-sampling-rate": intOption(0, {
    group: tracing,
    unit: "per million",
    doc: "Number of calls traced per million, for calls whose client sends no traceparent.",
    aliases: ["experimental-distributed-tracing-sampling-rate"],
  }),

  "corrupt-check-time": durationOption(0, {
    group: features,
    field: "corruptCheckMs",
    doc: "Interval between comparisons of all members' data (0s: never).",
    aliases: ["experimental-corrupt-check-time"],
  }),
  "compact-hash-check-time": durationOption(60_000, {
    group: features,
    field: "compactHashCheckMs",
    doc:
      "Interval between comparisons of compacted history by the leader. Requires the " +
      "feature gate CompactHashCheck.",
    aliases: ["experimental-compact-hash-check-time"],
  }),
  "enable-v2": boolOption(false, {
    group: features,
    field: "enableV2",
    doc:
      "Serve etcd's v2 API under /v2/ (docs/guide/v2.md), which etcd ended in 3.6; its keys are " +
      "kept in the store of v3.",
  }),
  "self-heal": boolOption(false, {
    group: features,
    field: "selfHeal",
    doc:
      "A member whose data differs from a majority's stops serving reads, rebuilds its " +
      "store from the leader, and clears the CORRUPT alarm. Not in etcd.",
  }),
  "compaction-batch-limit": intOption(0, {
    group: features,
    field: "compactionBatchLimit",
    zeroMeans: 1000,
    unit: "revisions",
    doc: "Maximum number of revisions removed in one compaction step (0 means 1000).",
    aliases: ["experimental-compaction-batch-limit"],
  }),
  "compaction-sleep-interval": durationOption(0, {
    group: features,
    field: "compactionSleepIntervalMs",
    zeroMeans: 10,
    doc: "Pause between two compaction steps (0s means 10ms).",
    aliases: ["experimental-compaction-sleep-interval"],
  }),
  "watch-progress-notify-interval": durationOption(0, {
    group: features,
    field: "watchProgressNotifyIntervalMs",
    zeroMeans: 600_000,
    doc:
      "Interval between progress notifications to idle watches that request them (0s " +
      "means 10m).",
    aliases: ["experimental-watch-progress-notify-interval"],
  }),
  "warning-apply-duration": durationOption(100, {
    group: features,
    field: "warningApplyDurationMs",
    doc: "Log a warning for a request that takes longer than this to apply.",
    aliases: ["experimental-warning-apply-duration"],
  }),
  "slow-fsync-handover": durationOption(100, {
    group: features,
    field: "slowFsyncHandoverMs",
    doc:
      "A leader whose log fsyncs take longer than this transfers leadership if a " +
      "majority of faster members has the same entries on disk; at most once in 5 " +
      "minutes (0s: never). Not in etcd.",
  }),
  "bootstrap-defrag-threshold-megabytes": uintOption(0, {
    group: features,
    unit: "MB",
    doc: "Defragment the store at start if that frees at least this much (0: never).",
    aliases: ["experimental-bootstrap-defrag-threshold-megabytes"],
    stage: pointless("LevelDB frees space in the background"),
  }),
  "max-learners": intOption(1, {
    group: features,
    field: "maxLearners",
    unit: "members",
    doc: "Maximum number of learners in the cluster.",
    aliases: ["experimental-max-learners"],
  }),
  "downgrade-check-time": durationOption(5000, {
    group: features,
    doc: "Interval between checks for a downgrade of the cluster.",
    aliases: ["experimental-downgrade-check-time"],
    stage: pointless("there is no earlier release to downgrade to"),
  }),
  "snapshot-catchup-entries": uintOption(5000, {
    group: features,
    field: "snapshotCatchUpEntries",
    unit: "entries",
    doc:
      "Number of log entries older than the snapshot that stay in memory. A follower that " +
      "lags by no more than these needs no snapshot.",
    aliases: ["experimental-snapshot-catch-up-entries"],
  }),

  "force-new-cluster": boolOption(false, {
    group: unsafe,
    field: "forceNewCluster",
    doc:
      "Start a new cluster that has only this member, with its existing data. For the " +
      "survivor of a lost majority. Use for one start only.",
  }),
  "unsafe-no-fsync": boolOption(false, {
    group: unsafe,
    field: "unsafeNoFsync",
    doc: "Do not fsync. A crash loses acknowledged writes.",
  }),
};
