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

export const monitoringOptions = {
  "enable-pprof": boolOption(false, "Serve Go profiles under /debug/pprof/.", {
    stage: pointless("there are no Go profiles; set NODE_OPTIONS to --cpu-prof or --inspect"),
  }),
  metrics: stringOption(
    "basic",
    "Level of detail of /metrics: 'extensive' adds histograms of the duration of calls.",
    { field: "metrics", allowed: ["basic", "extensive"] },
  ),
  "listen-metrics-urls": urlsOption(
    "",
    "Comma-separated URLs to listen on for /metrics and health checks only. https uses " +
      "--cert-file and --key-file.",
    { field: "listenMetricsUrls" },
  ),
};

export const loggingOptions = {
  logger: stringOption("zap", "Type of logger. Only 'zap' (structured logs) is accepted.", {
    allowed: ["zap"],
  }),
  "log-outputs": listOption(
    "default",
    "Comma-separated log destinations: 'default' or 'stderr', 'stdout', 'systemd/journal', " +
      "or file paths.",
    { unique: true },
  ),
  "log-level": stringOption("info", "Minimum level of log messages.", {
    allowed: ["debug", "info", "warn", "error", "dpanic", "panic", "fatal"],
  }),
  "log-format": stringOption("json", "'json' (one JSON object per line) or 'console' (text).", {
    defaultDoc: "json, console on a terminal",
    allowed: ["json", "console"],
  }),
  "enable-log-rotation": boolOption(
    false,
    "Rotate the log file. Requires exactly one file in --log-outputs.",
  ),
  "log-rotation-config-json": stringOption(
    '{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}',
    "Log rotation: maxsize in MB, maxage in days, maxbackups in files (0: unlimited), " +
      "localtime for local time in file names, compress for gzip.",
  ),
  "warning-unary-request-duration": durationOption(
    300,
    "Log a warning for a unary call that takes longer than this.",
    {
      field: "warningUnaryRequestDurationMs",
      zeroMeans: 300,
      aliases: ["experimental-warning-unary-request-duration"],
    },
  ),
};

export const tracingOptions = {
  "enable-distributed-tracing": boolOption(
    false,
    "Send traces of calls to an OpenTelemetry collector.",
    { aliases: ["experimental-enable-distributed-tracing"] },
  ),
  "distributed-tracing-address": stringOption(
    "localhost:4317",
    "Host and port of the collector (OTLP over gRPC, without TLS).",
    { aliases: ["experimental-distributed-tracing-address"] },
  ),
  "distributed-tracing-service-name": stringOption(
    "etcd",
    "Service name in traces. Should be the same on all members.",
    { aliases: ["experimental-distributed-tracing-service-name"] },
  ),
  "distributed-tracing-instance-id": stringOption(
    "",
    "Instance id in traces. Must differ between members.",
    { aliases: ["experimental-distributed-tracing-instance-id"] },
  ),
  "distributed-tracing-sampling-rate": intOption(
    0,
    "Number of calls traced per million, for calls whose client sends no traceparent.",
    { unit: "per million", aliases: ["experimental-distributed-tracing-sampling-rate"] },
  ),
};

export const featureOptions = {
  "corrupt-check-time": durationOption(
    0,
    "Interval between comparisons of all members' data (0s: never).",
    { field: "corruptCheckMs", aliases: ["experimental-corrupt-check-time"] },
  ),
  "compact-hash-check-time": durationOption(
    60_000,
    "Interval between comparisons of compacted history by the leader. Requires the feature " +
      "gate CompactHashCheck.",
    { field: "compactHashCheckMs", aliases: ["experimental-compact-hash-check-time"] },
  ),
  "enable-v2": boolOption(
    false,
    "Serve etcd's v2 API under /v2/ (docs/guide/v2.md), which etcd ended in 3.6; its keys " +
      "are kept in the store of v3.",
    { field: "enableV2" },
  ),
  "self-heal": boolOption(
    false,
    "A member whose data differs from a majority's stops serving reads, rebuilds its store " +
      "from the leader, and clears the CORRUPT alarm. Not in etcd.",
    { field: "selfHeal" },
  ),
  "compaction-batch-limit": intOption(
    0,
    "Maximum number of revisions removed in one compaction step (0 means 1000).",
    {
      field: "compactionBatchLimit",
      zeroMeans: 1000,
      unit: "revisions",
      aliases: ["experimental-compaction-batch-limit"],
    },
  ),
  "compaction-sleep-interval": durationOption(
    0,
    "Pause between two compaction steps (0s means 10ms).",
    {
      field: "compactionSleepIntervalMs",
      zeroMeans: 10,
      aliases: ["experimental-compaction-sleep-interval"],
    },
  ),
  "watch-progress-notify-interval": durationOption(
    0,
    "Interval between progress notifications to idle watches that request them (0s means " +
      "10m).",
    {
      field: "watchProgressNotifyIntervalMs",
      zeroMeans: 600_000,
      aliases: ["experimental-watch-progress-notify-interval"],
    },
  ),
  "warning-apply-duration": durationOption(
    100,
    "Log a warning for a request that takes longer than this to apply.",
    { field: "warningApplyDurationMs", aliases: ["experimental-warning-apply-duration"] },
  ),
  "slow-fsync-handover": durationOption(
    100,
    "A leader whose log fsyncs take longer than this transfers leadership if a majority of " +
      "faster members has the same entries on disk; at most once in 5 minutes (0s: never). " +
      "Not in etcd.",
    { field: "slowFsyncHandoverMs" },
  ),
  "bootstrap-defrag-threshold-megabytes": uintOption(
    0,
    "Defragment the store at start if that frees at least this much (0: never).",
    {
      unit: "MB",
      aliases: ["experimental-bootstrap-defrag-threshold-megabytes"],
      stage: pointless("LevelDB frees space in the background"),
    },
  ),
  "max-learners": intOption(1, "Maximum number of learners in the cluster.", {
    field: "maxLearners",
    unit: "members",
    aliases: ["experimental-max-learners"],
  }),
  "downgrade-check-time": durationOption(
    5000,
    "Interval between checks for a downgrade of the cluster.",
    {
      aliases: ["experimental-downgrade-check-time"],
      stage: pointless("there is no earlier release to downgrade to"),
    },
  ),
  "snapshot-catchup-entries": uintOption(
    5000,
    "Number of log entries older than the snapshot that stay in memory. A follower that " +
      "lags by no more than these needs no snapshot.",
    {
      field: "snapshotCatchUpEntries",
      unit: "entries",
      aliases: ["experimental-snapshot-catch-up-entries"],
    },
  ),
};

export const unsafeOptions = {
  "force-new-cluster": boolOption(
    false,
    "Start a new cluster that has only this member, with its existing data. For the " +
      "survivor of a lost majority. Use for one start only.",
    { field: "forceNewCluster" },
  ),
  "unsafe-no-fsync": boolOption(false, "Do not fsync. A crash loses acknowledged writes.", {
    field: "unsafeNoFsync",
  }),
};
