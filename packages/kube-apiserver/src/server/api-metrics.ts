/**
 * The server's metrics, by kube-apiserver's names (component-base: metrics; endpoints/metrics), and
 * those of its calls of the cluster (storage/etcd3/metrics).
 */

import type { Clock } from "@quorate/host";
import type { ClusterClient, ServedResource } from "@quorate/kube-storage";
import { MetricRegistry } from "@quorate/metrics";
import type { Call } from "../handlers/call.ts";
import type { OpenWatches } from "../handlers/resource-call.ts";
import { overloaded } from "../handlers/statuses.ts";
import type { Target } from "../handlers/target.ts";
import type { LevelName, PriorityLevels } from "./priority-levels.ts";

const DURATION_BOUNDS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
];
const SIZE_BOUNDS = [1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const LEVELS: readonly LevelName[] = ["system", "leader-election", "workload", "catch-all"];

const REQUEST_LABELS = ["verb", "group", "version", "resource", "subresource", "scope"];
/** Label sets of a family; resources of CustomResourceDefinitions are among their values. */
const MAX_SERIES = 5000;

/** metadata of a request as labels. */
function labelsOf(call: Call): [verb: string, ...others: string[]] {
  const { target } = call;
  const resource = target.isResourceRequest ? target.resource : "";
  const subresource = target.isResourceRequest ? target.subresource : nonResourcePath(target);
  const { group, version } = target;
  return [verbOf(call), group, version, resource, subresource, scopeOf(target)];
}

/** The first part of the path, one of a few: metrics may not grow with what clients ask. */
function nonResourcePath({ path }: Target): string {
  const [first = ""] = path.slice(1).split("/", 1);
  const known = ["api", "apis", "healthz", "livez", "readyz", "metrics", "openapi", "version"];
  return known.includes(first) ? `/${first}` : "";
}

function scopeOf({ isResourceRequest, name, namespace }: Target): string {
  if (!isResourceRequest) return "";
  if (name !== "") return "resource";
  return namespace === "" ? "cluster" : "namespace";
}

const VERBS: Readonly<Record<string, string>> = {
  get: "GET",
  list: "LIST",
  watch: "WATCH",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETECOLLECTION",
  post: "POST",
  put: "PUT",
};

/** The verb as Kubernetes' metrics name it. */
function verbOf(call: Call): string {
  const isApply =
    call.target.verb === "patch" &&
    call.header("content-type").startsWith("application/apply-patch");
  return isApply ? "APPLY" : (VERBS[call.target.verb] ?? "other");
}

export class ApiMetrics {
  readonly registry = new MetricRegistry();
  readonly #requests;
  readonly #durations;
  readonly #sizes;
  readonly #longRunning;
  readonly #watchEvents;
  readonly #watchEventSizes;
  readonly #terminations;
  #mutating = 0;
  #readOnly = 0;

  constructor(levels: PriorityLevels) {
    const { registry } = this;
    this.#requests = registry.counters(
      "apiserver_request_total",
      "Requests by verb, dry run value, group, version, resource, scope, component and code.",
      ["verb", "dry_run", ...REQUEST_LABELS.slice(1), "component", "code"],
      MAX_SERIES,
    );
    this.#durations = registry.histograms(
      "apiserver_request_duration_seconds",
      "Time from the head of a request to the end of its response, in seconds.",
      REQUEST_LABELS,
      DURATION_BOUNDS,
    );
    this.#sizes = registry.histograms(
      "apiserver_response_sizes",
      "Bytes of responses.",
      REQUEST_LABELS,
      SIZE_BOUNDS,
    );
    this.#longRunning = registry.gauges(
      "apiserver_longrunning_requests",
      "Watches that are open.",
      REQUEST_LABELS,
    );
    this.#watchEvents = registry.counters(
      "apiserver_watch_events_total",
      "Events sent to watches.",
      ["group", "version", "resource"],
      MAX_SERIES,
    );
    this.#watchEventSizes = registry.histograms(
      "apiserver_watch_events_sizes",
      "Bytes of events sent to watches.",
      ["group", "version", "resource"],
      [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072],
    );
    this.#terminations = registry.counters(
      "apiserver_request_terminations_total",
      "Requests that the server refused or cut off to protect itself.",
      ["code"],
    );
    this.#inFlight(levels);
  }

  #inFlight(levels: PriorityLevels): void {
    const { registry } = this;
    const inFlight = registry.gauges(
      "apiserver_current_inflight_requests",
      "Requests in flight, without watches.",
      ["request_kind"],
    );
    const seats = registry.gauges(
      "apiserver_flowcontrol_current_executing_seats",
      "Seats that are taken at a priority level.",
      ["priority_level"],
    );
    const waiting = registry.gauges(
      "apiserver_flowcontrol_current_inqueue_requests",
      "Requests that wait for a seat.",
      ["priority_level"],
    );
    const rejected = registry.counters(
      "apiserver_flowcontrol_rejected_requests_total",
      "Requests refused because too many waited.",
      ["priority_level"],
    );
    registry.onScrape(() => {
      inFlight.with("mutating").value = this.#mutating;
      inFlight.with("readOnly").value = this.#readOnly;
      for (const level of LEVELS) {
        const counts = levels.counts(level);
        seats.with(level).value = counts.taken;
        waiting.with(level).value = counts.waiting;
        rejected.with(level).value = counts.rejected;
      }
    });
  }

  /** A request other than a watch begins. Returns what to call at its end. */
  began(call: Call): () => void {
    const isMutating = !["get", "list", "head", "options"].includes(call.target.verb);
    if (isMutating) this.#mutating++;
    else this.#readOnly++;
    return () => {
      if (isMutating) this.#mutating--;
      else this.#readOnly--;
    };
  }

  /** A request has ended. */
  ended(call: Call, nowMs: number): void {
    const labels = labelsOf(call);
    const dryRun = call.query.has("dryRun") ? "All" : "";
    const code = String(call.status);
    this.#requests.with(labels[0], dryRun, ...labels.slice(1), "apiserver", code).add();
    if (call.status === 429 || call.status === 504) this.#terminations.with(code).add();
    if (labels[0] === "WATCH") return;
    this.#durations.with(...labels).observe((nowMs - call.startedMs) / 1000);
    this.#sizes.with(...labels).observe(call.sentBytes);
  }

  watchBegan(call: Call): () => void {
    const gauge = this.#longRunning.with(...labelsOf(call));
    gauge.value++;
    return () => {
      gauge.value--;
    };
  }

  watchEvent(group: string, version: string, resource: string, sizeBytes: number): void {
    this.#watchEvents.with(group, version, resource).add();
    this.#watchEventSizes.with(group, version, resource).observe(sizeBytes);
  }
}

/** Watches of one user, and of all; each takes some kilobytes. */
const MAX_WATCHES_PER_USER = 10_000;
const MAX_WATCHES = 50_000;
const RETRY_AFTER_SECONDS = 5;

interface WatchLimits {
  readonly perUser: number;
  readonly total: number;
}

/** The open watches: bounded for each user and in all, and ended when the server stops. */
export class WatchTable implements OpenWatches {
  readonly #metrics: ApiMetrics;
  readonly #limits: WatchLimits;
  readonly #byUser = new Map<string, number>();
  readonly #ends = new Set<() => void>();

  constructor(
    metrics: ApiMetrics,
    limits: WatchLimits = { perUser: MAX_WATCHES_PER_USER, total: MAX_WATCHES },
  ) {
    this.#metrics = metrics;
    this.#limits = limits;
  }

  get count(): number {
    return this.#ends.size;
  }

  open(call: Call, _resource: ServedResource, end: () => void): () => void {
    const { name } = call.user;
    const own = this.#byUser.get(name) ?? 0;
    if (own >= this.#limits.perUser || this.#ends.size >= this.#limits.total)
      throw overloaded(RETRY_AFTER_SECONDS);
    this.#byUser.set(name, own + 1);
    this.#ends.add(end);
    const ended = this.#metrics.watchBegan(call);
    return () => {
      if (!this.#ends.delete(end)) return;
      ended();
      const left = (this.#byUser.get(name) ?? 1) - 1;
      if (left === 0) this.#byUser.delete(name);
      else this.#byUser.set(name, left);
    };
  }

  sent({ group, version, resource }: ServedResource, sizeBytes: number): void {
    this.#metrics.watchEvent(group, version, resource, sizeBytes);
  }

  /** Ends all watches; their clients go on at another server, or when this one is back. */
  endAll(): void {
    for (const end of [...this.#ends]) end();
  }
}

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
  /** @returns to be told once of the outcome */
  const begun = (operation: string) => {
    const startMs = clock.monotonicMs();
    return (hasFailed: boolean): void => {
      if (hasFailed) errors.with(operation).add();
      durations.with(operation).observe((clock.monotonicMs() - startMs) / 1000);
    };
  };
  const timed = async <T>(operation: string, call: Promise<T>): Promise<T> => {
    const ended = begun(operation);
    let hasFailed = false;
    try {
      return await call;
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      ended(hasFailed);
    }
  };
  async function* timedParts<T>(
    operation: string,
    parts: AsyncIterable<T>,
  ): AsyncGenerator<T, undefined> {
    const ended = begun(operation);
    let hasFailed = false;
    try {
      yield* parts;
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      ended(hasFailed);
    }
  }
  return {
    range: (key, options) => timed("range", cluster.range(key, options)),
    rangeParts: (key, options, signal) =>
      timedParts("rangeParts", cluster.rangeParts(key, options, signal)),
    modRevisions: (keys) => timed("modRevisions", cluster.modRevisions(keys)),
    put: (key, value, lease, options) => timed("put", cluster.put(key, value, lease, options)),
    delete: (key, options) => timed("delete", cluster.delete(key, options)),
    watch: (key, options) => cluster.watch(key, options),
    grantLease: (ttlSeconds) => timed("grantLease", cluster.grantLease(ttlSeconds)),
    compact: (revision) => timed("compact", cluster.compact(revision)),
  };
}
