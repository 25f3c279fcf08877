/**
 * Settings that should be the same on all members, as metrics: what compares members can see where
 * they differ.
 */

import type { MetricRegistry } from "@quorate/metrics";
import type { ServerConfig } from "../src/config/server-config.ts";

/** Declares the metrics; none of them changes while the member runs. */
export function settingMetrics(registry: MetricRegistry, config: ServerConfig): void {
  const gauge = (name: string, help: string, value: number): void => {
    registry.gauge(`quorate_server_${name}`, help).value = value;
  };
  gauge("heartbeat_interval_seconds", "--heartbeat-interval.", config.heartbeatIntervalMs / 1000);
  gauge("election_timeout_seconds", "--election-timeout.", config.electionTimeoutMs / 1000);
  gauge(
    "quota_auto_disarm",
    "1 if the alarm NOSPACE ends by itself once there is space (--quota-auto-disarm), else 0.",
    Number(config.quotaAutoDisarm),
  );
  gauge(
    "self_heal",
    "1 if the member fetches the leader's store when its own differs (--self-heal), else 0.",
    Number(config.selfHeal),
  );
}
