/** A closed loop of clients: each has one thing under way and starts the next when it is done. */

/** What the clients do. */
export interface Load {
  readonly clients: number;
  /** Things counted for each one that a client does: the events that one put brings, else 1. */
  readonly unitsPerCall: number;
  /** Makes connections and whatever must stand before the first call. */
  open(events: LoadEvents): Promise<void>;
  /**
   * Begins the next call of a client; it may wait in a buffer until `flush` is called, or something
   * has been received.
   */
  start(client: number): void;
  flush(): void;
  close(): void;
}

/** What a load reports to its driver. */
export interface LoadEvents {
  done(client: number, ok: boolean): void;
  /** It cannot go on. */
  failed(error: Error): void;
}

export interface LoadOptions {
  readonly warmUpMs: number;
  readonly durationMs: number;
  /** Called when the warm-up is over and when the measurement is. */
  readonly onPhase?: (phase: "measure" | "end") => void;
}

export interface LoadResult {
  /** Units done in the measured time. */
  readonly answered: number;
  /** Calls refused or broken, in warm-up too. */
  readonly failed: number;
  /** Calls answered in all, warm-up and run-out included. */
  readonly callsInAll: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU seconds of this process in the measured time. */
  readonly generatorCpuS: number;
}

/** Runs the load for a time. Throws if a connection breaks. */
export async function runLoad(load: Load, options: LoadOptions): Promise<LoadResult> {
  const startedAt = new Float64Array(load.clients);
  const latencies = new Samples();
  let phase: "warm-up" | "measure" | "run-out" = "warm-up";
  let open = 0;
  let answered = 0;
  let callsInAll = 0;
  let failed = 0;
  let idle: () => void = () => {};
  const { promise: broken, reject: breakOff } = Promise.withResolvers<never>();
  broken.catch(() => {});

  const start = (client: number): void => {
    open++;
    startedAt[client] = performance.now();
    load.start(client);
  };
  const done = (client: number, ok: boolean): void => {
    open--;
    if (ok) {
      callsInAll++;
      if (phase === "measure") {
        answered++;
        latencies.add(performance.now() - startedAt[client]);
      }
    } else failed++;
    if (phase !== "run-out") start(client);
    else if (open === 0) idle();
  };
  const timers: NodeJS.Timeout[] = [];
  try {
    await Promise.race([load.open({ done, failed: breakOff }), broken]);
    const run = new Promise<LoadResult>((resolve) => {
      let cpuStart: NodeJS.CpuUsage | undefined;
      let measuredFrom = 0;
      for (let client = 0; client < load.clients; client++) start(client);
      load.flush();
      timers[0] = setTimeout(() => {
        phase = "measure";
        cpuStart = process.cpuUsage();
        measuredFrom = performance.now();
        options.onPhase?.("measure");
        timers[1] = setTimeout(() => {
          const elapsedMs = performance.now() - measuredFrom;
          const cpu = process.cpuUsage(cpuStart);
          phase = "run-out";
          options.onPhase?.("end");
          const [p50Ms, p99Ms] = latencies.quantiles([0.5, 0.99]) as [number, number];
          const generatorCpuS = (cpu.user + cpu.system) / 1e6;
          const units = answered * load.unitsPerCall;
          // Calls that are still open are waited for, so that all that was sent can be counted
          // against the server's revision.
          idle = () =>
            resolve({
              answered: units,
              failed,
              callsInAll,
              elapsedMs,
              p50Ms,
              p99Ms,
              generatorCpuS,
            });
          if (open === 0) idle();
        }, options.durationMs);
      }, options.warmUpMs);
    });
    return await Promise.race([run, broken]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    load.close();
  }
}

/**
 * Runs each client's calls until `count` were begun, and waits for all. Throws if one is refused.
 * Returns the milliseconds it took.
 */
export async function runCount(load: Load, count: number): Promise<number> {
  let begun = 0;
  let finished = 0;
  const { promise: all, resolve, reject } = Promise.withResolvers<void>();
  all.catch(() => {});
  const start = (client: number): void => {
    if (begun === count) return;
    begun++;
    load.start(client);
  };
  const done = (client: number, ok: boolean): void => {
    if (!ok) reject(new Error("the server refused a call"));
    if (++finished === count) resolve();
    else start(client);
  };
  try {
    await load.open({ done, failed: reject });
    const from = performance.now();
    for (let client = 0; client < load.clients; client++) start(client);
    load.flush();
    await all;
    return performance.now() - from;
  } finally {
    load.close();
  }
}

/** Numbers in a growing array. */
class Samples {
  #values = new Float64Array(1 << 16);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count++] = value;
  }

  /** The given quantiles (0 to 1), NaN if there is no sample. */
  quantiles(wanted: readonly number[]): number[] {
    const sorted = this.#values.subarray(0, this.#count).sort();
    return wanted.map(
      (q) => sorted[Math.min(this.#count - 1, Math.floor(q * this.#count))] ?? Number.NaN,
    );
  }
}
