/** Checks of intervals and limits: each alone, and against each other. */
import { formatDurationMs } from "@quorate/host";
import { contradiction } from "@quorate/member";
import type { OptionValues } from "./options.ts";
import type { Settings } from "./settings.ts";

const MAX_ELECTION_MS = 50_000;
const SUGGESTED_MAX_QUOTA_BYTES = 8 * 1024 ** 3;
const SUGGESTED_MAX_REQUEST_BYTES = 10 * 1024 ** 2;

/** Throws ConfigError. */
export function checkTiming(values: OptionValues): void {
  const heartbeatMs = values["heartbeat-interval"];
  const electionMs = values["election-timeout"];
  if (heartbeatMs === 0) contradiction(`--heartbeat-interval must be >0 (set to ${heartbeatMs}ms)`);
  if (electionMs === 0) contradiction(`--election-timeout must be >0 (set to ${electionMs}ms)`);
  if (5 * heartbeatMs > electionMs) {
    contradiction(
      `--election-timeout[${electionMs}ms] should be at least as 5 times as --heartbeat-interval[${heartbeatMs}ms]`,
    );
  }
  if (electionMs > MAX_ELECTION_MS) {
    contradiction(
      `--election-timeout[${electionMs}ms] is too long, and should be set less than ${MAX_ELECTION_MS}ms`,
    );
  }
  const checkTimeMs = values["compact-hash-check-time"];
  if (checkTimeMs <= 0)
    contradiction(`--compact-hash-check-time must be >0 (set to ${formatDurationMs(checkTimeMs)})`);
  const notNegative = [
    "grpc-keepalive-min-time",
    "grpc-keepalive-interval",
    "grpc-keepalive-timeout",
    "backend-batch-interval",
    "compaction-sleep-interval",
    "watch-progress-notify-interval",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "corrupt-check-time",
    "downgrade-check-time",
  ] as const;
  for (const name of notNegative) {
    if (values[name] < 0)
      contradiction(`--${name} must not be negative (set to ${formatDurationMs(values[name])})`);
  }
}

/** Throws ConfigError; warns of limits above what is recommended. */
export function checkLimits(settings: Settings, values: OptionValues): void {
  for (const name of [
    "max-txn-ops",
    "max-request-bytes",
    "max-concurrent-streams",
    "snapshot-count",
  ] as const) {
    if (values[name] === 0) contradiction(`--${name} must be >0`);
  }
  for (const name of ["backend-batch-limit", "compaction-batch-limit", "max-learners"] as const) {
    if (values[name] < 0) contradiction(`--${name} must not be negative (set to ${values[name]})`);
  }
  if (values["bcrypt-cost"] < 4 || values["bcrypt-cost"] > 31)
    contradiction(`--bcrypt-cost must be between 4 and 31 (set to ${values["bcrypt-cost"]})`);
  const samplingRate = values["distributed-tracing-sampling-rate"];
  if (values["enable-distributed-tracing"] && (samplingRate < 0 || samplingRate > 1_000_000)) {
    contradiction(
      `--distributed-tracing-sampling-rate must be between 0 and 1000000 (set to ${samplingRate})`,
    );
  }
  if (values["max-request-bytes"] > SUGGESTED_MAX_REQUEST_BYTES) {
    settings.warn("exceeded recommended request limit", {
      "max-request-bytes": values["max-request-bytes"],
      "recommended-request-bytes": SUGGESTED_MAX_REQUEST_BYTES,
    });
  }
  if (values["quota-backend-bytes"] > SUGGESTED_MAX_QUOTA_BYTES) {
    settings.warn("quota exceeds the maximum value", {
      "quota-size-bytes": values["quota-backend-bytes"],
      "quota-maximum-size-bytes": SUGGESTED_MAX_QUOTA_BYTES,
    });
  }
}
