/**
 * The process's own health, under the names that dashboards for Node (nodejs_*) and for any program
 * (process_*) use. All of it is read at each scrape, but for the pauses of the collector,
 * which Node reports as they happen.
 */
import { readdirSync, readFileSync } from "node:fs";
import {
  constants,
  monitorEventLoopDelay,
  PerformanceObserver,
  performance,
} from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { LogCounts } from "@quorate/host/node";
import type { MetricRegistry } from "../src/registry.ts";

const GC_KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb",
};

/** Declares the metrics of this process; returns a function that ends the measuring. */
export function processMetrics(registry: MetricRegistry): () => void {
  processCounters(registry);
  files(registry);
  heap(registry);
  const stopCollector = collector(registry);
  const stopLoop = loop(registry);
  const version = /^v(\d+)\.(\d+)\.(\d+)/.exec(process.version)!;
  registry
    .gauges("nodejs_version_info", "1 for the version of Node.", [
      "version",
      "major",
      "minor",
      "patch",
    ])
    .with(...version).value = 1;
  return () => {
    stopCollector();
    stopLoop();
  };
}

/** Declares what the log of this process has dropped and holds. */
export function logMetrics(registry: MetricRegistry, counts: () => LogCounts): void {
  registry.readCounter(
    "quorate_log_dropped_lines_total",
    "Lines of the log that were dropped because what reads it had stopped.",
    () => counts().droppedLines,
  );
  registry.gauge(
    "quorate_log_queue_bytes",
    "Bytes of lines of the log that wait to be written.",
    () => counts().queueBytes,
  );
}

function processCounters(registry: MetricRegistry): void {
  const cpu = (kind: "user" | "system") => () => process.cpuUsage()[kind] / 1e6;
  registry.readCounter("process_cpu_user_seconds_total", "User CPU time in seconds.", cpu("user"));
  registry.readCounter(
    "process_cpu_system_seconds_total",
    "System CPU time in seconds.",
    cpu("system"),
  );
  registry.readCounter(
    "process_cpu_seconds_total",
    "User and system CPU time in seconds.",
    () => cpu("user")() + cpu("system")(),
  );
  const startSeconds = Math.round(Date.now() / 1000 - process.uptime());
  registry.gauge(
    "process_start_time_seconds",
    "When the process started, in seconds since 1970.",
    () => startSeconds,
  );
  registry.gauge("process_resident_memory_bytes", "Resident memory in bytes.", () =>
    process.memoryUsage.rss(),
  );
  registry.gauge(
    "process_virtual_memory_max_bytes",
    "Virtual memory that the process may have, -1 for no limit.",
    () => Number(/Max address space +(\d+)/.exec(textOf("/proc/self/limits"))?.[1] ?? -1),
  );
  // The machine's, or the container's: what Go's programs report under this name.
  for (const [name, column] of [
    ["receive", "InOctets"],
    ["transmit", "OutOctets"],
  ] as const) {
    registry.readCounter(
      `process_network_${name}_bytes_total`,
      `Bytes of IP packets, ${name}.`,
      () => ipOctets(column),
    );
  }
  registry.gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", () =>
    kilobytes("/proc/self/status", /^VmSize:\s+(\d+) kB$/m),
  );
}

/** A figure of /proc in kilobytes, as bytes; 0 where there is no /proc. */
function kilobytes(path: string, pattern: RegExp): number {
  return 1024 * Number(pattern.exec(textOf(path))?.[1] ?? 0);
}

/** A column of the IpExt rows, of which the first names what the second counts. */
function ipOctets(column: string): number {
  const [names = [], values = []] = [
    ...textOf("/proc/self/net/netstat").matchAll(/^IpExt: (.*)$/gm),
  ].map(([, row = ""]) => row.split(" "));
  return Number(values[names.indexOf(column)] ?? 0);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Open files. Also under the names by which etcd has them. */
function files(registry: MetricRegistry): void {
  const open = () => {
    try {
      // Without the one that reads the directory.
      return readdirSync("/proc/self/fd").length - 1;
    } catch {
      return 0;
    }
  };
  // The limit does not change while the process runs.
  let limit: number | undefined;
  const most = () => {
    limit ??= Number(/^Max open files\s+(\d+)/m.exec(textOf("/proc/self/limits"))?.[1] ?? 0);
    return limit;
  };
  registry.gauge("process_open_fds", "Open file descriptors.", open);
  registry.gauge("process_max_fds", "File descriptors that may be open.", most);
  registry.gauge("os_fd_used", "Open file descriptors.", open);
  registry.gauge("os_fd_limit", "File descriptors that may be open.", most);
}

function heap(registry: MetricRegistry): void {
  registry.gauge(
    "nodejs_heap_size_total_bytes",
    "Bytes of the heap.",
    () => getHeapStatistics().total_heap_size,
  );
  registry.gauge(
    "nodejs_heap_size_used_bytes",
    "Bytes of the heap that are used.",
    () => getHeapStatistics().used_heap_size,
  );
  registry.gauge(
    "nodejs_heap_size_limit_bytes",
    "Bytes that the heap may have.",
    () => getHeapStatistics().heap_size_limit,
  );
  registry.gauge(
    "nodejs_external_memory_bytes",
    "Bytes outside the heap, buffers above all.",
    () => process.memoryUsage().external,
  );
  const total = registry.gauges(
    "nodejs_heap_space_size_total_bytes",
    "Bytes of each space of the heap.",
    ["space"],
  );
  const used = registry.gauges(
    "nodejs_heap_space_size_used_bytes",
    "Used bytes of each space of the heap.",
    ["space"],
  );
  const available = registry.gauges(
    "nodejs_heap_space_size_available_bytes",
    "Free bytes of each space of the heap.",
    ["space"],
  );
  const resources = registry.gauges(
    "nodejs_active_resources",
    "Sockets, files, timers and the like that keep the process up.",
    ["type"],
  );
  const count = registry.gauge("nodejs_active_resources_total", "All of nodejs_active_resources.");
  registry.onScrape(() => {
    for (const {
      space_name,
      space_size,
      space_used_size,
      space_available_size,
    } of getHeapSpaceStatistics()) {
      const name = space_name.replace(/_space$/, "");
      total.with(name).value = space_size;
      used.with(name).value = space_used_size;
      available.with(name).value = space_available_size;
    }
    const active = process.getActiveResourcesInfo();
    resources.reset();
    for (const type of active) resources.with(type).value++;
    count.value = active.length;
  });
}

/** The pauses of the garbage collector. */
function collector(registry: MetricRegistry): () => void {
  const durations = registry.histograms(
    "nodejs_gc_duration_seconds",
    "How long collections take: major, minor, incremental or weakcb.",
    ["kind"],
    [0.001, 0.01, 0.1, 1, 2, 5],
  );
  const byKind = new Map(
    Object.entries(GC_KINDS).map(([kind, name]) => [Number(kind), durations.with(name)]),
  );
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (!("detail" in entry)) continue;
      const { kind } = entry.detail as { readonly kind: number };
      byKind.get(kind)?.observe(entry.duration / 1000);
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  return () => observer.disconnect();
}

function loop(registry: MetricRegistry): () => void {
  const delay = new LoopDelay();
  let delays: LoopDelays = delay.read();
  registry.onScrape(() => {
    delays = delay.read();
  });
  const gauge = (name: string, what: string, key: keyof LoopDelays) => {
    registry.gauge(
      `nodejs_eventloop_lag_${name}seconds`,
      `How long a turn of the event loop takes: ${what}.`,
      () => delays[key],
    );
  };
  gauge("", "the mean of about half a minute", "mean");
  gauge("min_", "the shortest", "min");
  gauge("max_", "the longest of the last half minute at least", "max");
  gauge("mean_", "the mean of about half a minute", "mean");
  gauge("stddev_", "the standard deviation", "stddev");
  gauge("p50_", "the median", "p50");
  gauge("p90_", "the 90th percentile", "p90");
  gauge("p99_", "the 99th percentile", "p99");
  registry.readCounter(
    "quorate_process_loop_active_seconds_total",
    "Seconds that the event loop was not waiting; its rate is the share of one processor's time that the loop takes.",
    () => performance.eventLoopUtilization().active / 1000,
  );
  return () => delay.stop();
}

/**
 * Samples are kept for this long at least, so that every scraper with this interval sees each peak.
 */
const WINDOW_MS = 30_000;
/** Only a Node that cannot sample turns uses it: there a timer this coarse samples instead. */
const TIMER_RESOLUTION_MS = 100;

/** Of the turns in the last window, in seconds. */
interface LoopDelays {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stddev: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

const NONE: LoopDelays = { min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 };

/**
 * How long the turns of the event loop take: while one runs, no request is served. Sampled once a
 * turn, so that an idle member is not woken for it (a sampling timer of 10 ms would be most of what
 * an idle member does).
 *
 * Measures from when it is made until `stop`.
 */
class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({
    samplePerIteration: true,
    resolution: TIMER_RESOLUTION_MS,
  });
  #previous = NONE;
  #since = performance.now();

  constructor() {
    this.#histogram.enable();
  }

  /**
   * The present window's figures; peaks are those of the one before too. Begins a new window if
   * this one is over.
   */
  read(): LoopDelays {
    const present = this.#histogram.count === 0 ? NONE : this.#figures();
    const previous = this.#previous;
    if (performance.now() - this.#since >= WINDOW_MS) {
      this.#previous = present;
      this.#since = performance.now();
      this.#histogram.reset();
    }
    return {
      ...present,
      max: Math.max(present.max, previous.max),
      p90: Math.max(present.p90, previous.p90),
      p99: Math.max(present.p99, previous.p99),
    };
  }

  stop(): void {
    this.#histogram.disable();
  }

  #figures(): LoopDelays {
    const histogram = this.#histogram;
    const seconds = (nanoseconds: number) => nanoseconds / 1e9;
    return {
      min: seconds(histogram.min),
      max: seconds(histogram.max),
      mean: seconds(histogram.mean),
      stddev: seconds(histogram.stddev),
      p50: seconds(histogram.percentile(50)),
      p90: seconds(histogram.percentile(90)),
      p99: seconds(histogram.percentile(99)),
    };
  }
}
