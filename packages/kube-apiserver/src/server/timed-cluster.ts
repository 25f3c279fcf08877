/** Counts the calls of a cluster, by kube-apiserver's names (storage/etcd3/metrics). */
import type { Clock } from "@quorate/host";
import type { ClusterClient } from "@quorate/kube-storage";
import type { MetricRegistry } from "@quorate/metrics";

const BOUNDS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 5, 8, 10];

/** The same cluster; its calls are counted in `registry`. */
export function timedCluster(
  cluster: ClusterClient,
  registry: MetricRegistry,
  clock: Pick<Clock, "monotonicMs">,
): ClusterClient {
  const durations = registry.histograms(
    "etcd_request_duration_seconds",
    "Time of requests to the cluster, in seconds.",
    ["operation"],
    BOUNDS,
  );
  const errors = registry.counters(
    "etcd_request_errors_total",
    "Requests to the cluster that failed.",
    ["operation"],
  );
  const timed = async <T>(operation: string, call: Promise<T>): Promise<T> => {
    const startMs = clock.monotonicMs();
    try {
      return await call;
    } catch (error) {
      errors.with(operation).add();
      throw error;
    } finally {
      durations.with(operation).observe((clock.monotonicMs() - startMs) / 1000);
    }
  };
  return {
    range: (key, options) => timed("range", cluster.range(key, options)),
    modRevisions: (keys) => timed("modRevisions", cluster.modRevisions(keys)),
    put: (key, value, lease, options) => timed("put", cluster.put(key, value, lease, options)),
    delete: (key, options) => timed("delete", cluster.delete(key, options)),
    watch: (key, options) => cluster.watch(key, options),
    grantLease: (ttlSeconds) => timed("grantLease", cluster.grantLease(ttlSeconds)),
    compact: (revision) => timed("compact", cluster.compact(revision)),
  };
}
