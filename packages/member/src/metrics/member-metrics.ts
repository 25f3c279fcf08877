/**
 * What a member counts, under the names that etcd's dashboards and alert rules use (etcd:
 * server/etcdserver/metrics.go and its like). The rows are in the tables beside this file.
 */

import {
  type Declared,
  declare,
  type Family,
  type Histogram,
  MetricRegistry,
} from "@quorate/metrics";
import { CALLS_METRICS, CALLS_READINGS, EXTENSIVE_CALLS_METRICS } from "./calls-table.ts";
import { DISK_METRICS } from "./disk-table.ts";
import { LEASES_METRICS } from "./leases-table.ts";
import { NETWORK_METRICS } from "./network-table.ts";
import { SERVER_METRICS, SERVER_READINGS } from "./server-table.ts";
import type { MetricSources } from "./sources.ts";
import { STORE_METRICS, STORE_READINGS } from "./store-table.ts";

const TABLE = {
  ...SERVER_METRICS,
  ...DISK_METRICS,
  ...STORE_METRICS,
  ...LEASES_METRICS,
  ...NETWORK_METRICS,
  ...CALLS_METRICS,
} as const;

const READINGS = [...SERVER_READINGS, ...STORE_READINGS, ...CALLS_READINGS];

/** All metrics of one member, by the names of their rows. */
export type MemberMetrics = Declared<typeof TABLE> & {
  readonly registry: MetricRegistry;
  /** Only with --metrics=extensive. */
  readonly grpcHandling: Family<Histogram> | undefined;
};

/** Registers the metrics of one member; `sources` is read at each scrape. */
export function memberMetrics(
  sources: MetricSources,
  options: { extensive: boolean },
): MemberMetrics {
  const registry = new MetricRegistry();
  for (const register of READINGS) register(registry, sources);
  return {
    registry,
    ...declare(registry, TABLE),
    grpcHandling: options.extensive
      ? declare(registry, EXTENSIVE_CALLS_METRICS).grpcHandling
      : undefined,
  };
}
