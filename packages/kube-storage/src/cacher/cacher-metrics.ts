/**
 * What a Cacher counts (apiserver: pkg/storage/cacher/metrics). `samples` has the names and labels
 * of kube-apiserver.
 */

export interface MetricSample {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: Readonly<Record<string, string>>;
  /** For a histogram: how many observations. */
  readonly value: number;
  /** A histogram's sum, and the counts of observations up to each bound. */
  readonly sum?: number;
  readonly buckets?: readonly { readonly upTo: number; readonly count: number }[];
}

/** Seconds. */
const WAIT_BOUNDS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3];
/** kube-apiserver keeps the revision below 2^53 by its last 15 digits. */
const REVISION_MODULUS = 10 ** 15;

/** Lists of one index; "" for those without. */
interface ListCounts {
  lists: number;
  fetched: number;
}

export class CacherMetrics {
  readonly #labels: Readonly<Record<string, string>>;
  eventsReceived = 0;
  eventsDispatched = 0;
  initEvents = 0;
  initializations = 0;
  terminatedWatchers = 0;
  capacity = 0;
  capacityIncreases = 0;
  capacityDecreases = 0;
  resourceVersion = 0;
  listReturned = 0;
  /** Comparisons with the store, by outcome. */
  readonly consistencyChecks = { success: 0, failure: 0, error: 0 };
  /** By [success, fallback]. */
  readonly #consistentReads = new Map<string, number>();
  readonly #lists = new Map<string, ListCounts>();
  readonly #waits: number[] = new Array(WAIT_BOUNDS.length).fill(0);
  #waitCount = 0;
  #waitSum = 0;

  constructor(resource: { readonly group: string; readonly resource: string }) {
    this.#labels = { group: resource.group, resource: resource.resource };
  }

  capacityChanged(capacity: number): void {
    if (capacity > this.capacity) this.capacityIncreases++;
    else this.capacityDecreases++;
    this.capacity = capacity;
  }

  consistentRead(success: boolean, fallback: boolean): void {
    const key = `${success} ${fallback}`;
    this.#consistentReads.set(key, (this.#consistentReads.get(key) ?? 0) + 1);
  }

  consistentReads(success: boolean, fallback: boolean): number {
    return this.#consistentReads.get(`${success} ${fallback}`) ?? 0;
  }

  listed(index: string, fetched: number, returned: number): void {
    const counts = this.#lists.get(index) ?? { lists: 0, fetched: 0 };
    counts.lists++;
    counts.fetched += fetched;
    this.#lists.set(index, counts);
    this.listReturned += returned;
  }

  waited(waitedMs: number): void {
    const seconds = waitedMs / 1000;
    this.#waitCount++;
    this.#waitSum += seconds;
    const bucket = WAIT_BOUNDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) this.#waits[bucket] = (this.#waits[bucket] ?? 0) + 1;
  }

  samples(): MetricSample[] {
    const labels = this.#labels;
    const counter = (name: string, value: number, more = {}): MetricSample => ({
      name,
      type: "counter",
      labels: { ...labels, ...more },
      value,
    });
    const gauge = (name: string, value: number): MetricSample => ({
      name,
      type: "gauge",
      labels,
      value,
    });
    const samples = [
      counter("apiserver_watch_cache_events_received_total", this.eventsReceived),
      counter("apiserver_watch_cache_events_dispatched_total", this.eventsDispatched),
      counter("apiserver_watch_cache_initializations_total", this.initializations),
      counter("apiserver_init_events_total", this.initEvents),
      counter("apiserver_terminated_watchers_total", this.terminatedWatchers),
      counter("apiserver_cache_list_returned_objects_total", this.listReturned),
      counter("watch_cache_capacity_increase_total", this.capacityIncreases),
      counter("watch_cache_capacity_decrease_total", this.capacityDecreases),
      gauge("watch_cache_capacity", this.capacity),
      gauge("apiserver_watch_cache_resource_version", this.resourceVersion % REVISION_MODULUS),
      this.#waitHistogram(),
    ];
    for (const [index, { lists, fetched }] of this.#lists) {
      samples.push(counter("apiserver_cache_list_total", lists, { index }));
      samples.push(counter("apiserver_cache_list_fetched_objects_total", fetched, { index }));
    }
    for (const [status, count] of Object.entries(this.consistencyChecks))
      if (count > 0)
        samples.push(counter("apiserver_storage_consistency_checks_total", count, { status }));
    for (const [key, count] of this.#consistentReads) {
      const [success, fallback] = key.split(" ");
      const name = "apiserver_watch_cache_consistent_read_total";
      samples.push(counter(name, count, { success, fallback }));
    }
    return samples;
  }

  #waitHistogram(): MetricSample {
    let count = 0;
    const buckets = WAIT_BOUNDS.map((upTo, i) => ({ upTo, count: (count += this.#waits[i] ?? 0) }));
    return {
      name: "apiserver_watch_cache_read_wait_seconds",
      type: "histogram",
      labels: this.#labels,
      value: this.#waitCount,
      sum: this.#waitSum,
      buckets,
    };
  }
}
