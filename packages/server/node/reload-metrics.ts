/** How files about security do that are read again while the member runs. */
import type { MetricRegistry } from "@quorate/metrics";

/** What follows its files: TLS of a port, keys of tokens. */
export interface ReloadedFiles {
  readonly failedReloads: number;
  /** True while the files cannot be used, so that those from before are in force. */
  readonly isStale: boolean;
}

/** Declares the metrics. @param sources by the label that they have; undefined: not in use */
export function reloadMetrics(
  registry: MetricRegistry,
  sources: Readonly<Record<string, ReloadedFiles | undefined>>,
): void {
  const failures = registry.counters(
    "quorate_security_reload_failures_total",
    "How often changed files about security could not be used; those from before stay in force.",
    ["source"],
  );
  const stale = registry.gauges(
    "quorate_security_reload_stale",
    "1 while files about security cannot be used and those from before are in force, else 0.",
    ["source"],
  );
  for (const [name, source] of Object.entries(sources)) {
    if (source === undefined) continue;
    const [failed, gauge] = [failures.with(name), stale.with(name)];
    registry.onScrape(() => {
      failed.value = source.failedReloads;
      gauge.value = source.isStale ? 1 : 0;
    });
  }
}
