/** A closed loop of clients: each has one call open and starts the next when it is answered. */
import { KVService, PutRequest, RangeRequest, RangeResponse } from "@quorate/proto";
import type { ClientIdentity } from "../scripts/cluster/health.ts";
import { Connection } from "./connection.ts";

/** What the clients do. */
export type Operation = "put" | "get" | "get-serializable";

export interface LoadOptions {
  readonly operation: Operation;
  /** Closed-loop clients; they share `connections` connections, which go round robin to `endpoints`. */
  readonly clients: number;
  readonly connections: number;
  readonly endpoints: readonly string[];
  readonly identity: ClientIdentity;
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly keys: KeySpace;
  /** Called when the warm-up is over and when the measurement is. */
  readonly onPhase: (phase: "measure" | "end") => void;
}

export interface LoadResult {
  /** Calls answered in the measured time. */
  readonly answered: number;
  /** Calls refused or broken, in warm-up too. */
  readonly failed: number;
  /** Calls answered in all, warm-up and run-out included. */
  readonly answeredInAll: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU seconds of this process in the measured time. */
  readonly generatorCpuS: number;
}

/** Keys of 8 bytes, `count` of them, and one value. */
export interface KeySpace {
  readonly count: number;
  readonly keys: readonly Buffer[];
  readonly value: Buffer;
}

export const keyBytes = 8;

/** `count` keys ("00000000" on) and a value of `valueBytes` bytes that do not compress. */
export function createKeySpace(count: number, valueBytes: number): KeySpace {
  const keys = Array.from({ length: count }, (_, index) => Buffer.from(String(index).padStart(keyBytes, "0"), "latin1"));
  const next = randomUint32(7);
  const value = Buffer.from(Array.from({ length: valueBytes }, () => next() & 0xff));
  return { count, keys, value };
}

/** Marsaglia's xorshift32: which keys are used in which order is the same in every run. */
function randomUint32(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** Where in the encoded message the key's bytes lie: after its tag and its length. */
const keyAt = 2;

function messageOf(operation: Operation, keys: KeySpace): Uint8Array {
  const key = keys.keys[0]!;
  if (operation === "put") return PutRequest.encode({ key, value: keys.value }).slice();
  return RangeRequest.encode({ key, serializable: operation === "get-serializable" }).slice();
}

const pathOf = (operation: Operation): string => (operation === "put" ? KVService.methods.Put : KVService.methods.Range).path;

/** Runs the load. Throws if a connection breaks. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { clients, keys, warmUpMs, durationMs } = options;
  const message = messageOf(options.operation, keys);
  const startedAt = new Float64Array(clients);
  const latencies = new Samples();
  const nextKey = randomUint32(42);
  let phase: "warm-up" | "measure" | "run-out" = "warm-up";
  let open = 0;
  let answered = 0;
  let answeredInAll = 0;
  let failed = 0;
  let broken: (error: Error) => void = () => {};
  let idle: () => void = () => {};

  const connections: Connection[] = [];
  const start = (slot: number): void => {
    open++;
    startedAt[slot] = performance.now();
    connections[slot % connections.length]!.call(slot, message, keys.keys[nextKey() % keys.count]!, keyAt);
  };
  const done = (slot: number, ok: boolean): void => {
    open--;
    if (ok) {
      answeredInAll++;
      if (phase === "measure") {
        answered++;
        latencies.add(performance.now() - startedAt[slot]!);
      }
    } else failed++;
    if (phase !== "run-out") start(slot);
    else if (open === 0) idle();
  };
  for (let index = 0; index < options.connections; index++) {
    const endpoint = options.endpoints[index % options.endpoints.length]!;
    connections.push(await Connection.open(endpoint, pathOf(options.operation), options.identity, done, (error) => broken(error)));
  }
  let cpuStart: NodeJS.CpuUsage | undefined;
  let measuredFrom = 0;
  const timers: NodeJS.Timeout[] = [];
  try {
    return await new Promise<LoadResult>((resolve, reject) => {
      broken = reject;
      for (let slot = 0; slot < clients; slot++) start(slot);
      for (const connection of connections) connection.flush();
      timers[0] = setTimeout(() => {
        phase = "measure";
        cpuStart = process.cpuUsage();
        measuredFrom = performance.now();
        options.onPhase("measure");
      }, warmUpMs);
      timers[1] = setTimeout(() => {
        const elapsedMs = performance.now() - measuredFrom;
        const cpu = process.cpuUsage(cpuStart);
        phase = "run-out";
        options.onPhase("end");
        const [p50Ms, p99Ms] = latencies.quantiles([0.5, 0.99]) as [number, number];
        // Calls that are still open are waited for, so that all that was sent can be counted against the server's revision.
        idle = () => resolve({ answered, failed, answeredInAll, elapsedMs, p50Ms, p99Ms, generatorCpuS: (cpu.user + cpu.system) / 1e6 });
        if (open === 0) idle();
      }, warmUpMs + durationMs);
    });
  } finally {
    broken = () => {};
    for (const timer of timers) clearTimeout(timer);
    for (const connection of connections) connection.close();
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
    return wanted.map((q) => sorted[Math.min(this.#count - 1, Math.floor(q * this.#count))] ?? Number.NaN);
  }
}

/** Writes every key once, `inFlight` at a time, so that gets find what they ask for. */
export async function preload(endpoint: string, identity: ClientIdentity, keys: KeySpace, inFlight: number): Promise<void> {
  const message = messageOf("put", keys);
  await eachCall(endpoint, identity, "put", message, keys.keys, inFlight);
}

/** The store's revision, as a linearizable range tells it. */
export async function revisionOf(endpoint: string, identity: ClientIdentity): Promise<number> {
  const [answer] = await eachCall(
    endpoint,
    identity,
    "get",
    RangeRequest.encode({ key: Buffer.alloc(keyBytes) }),
    [Buffer.alloc(keyBytes)],
    1,
  );
  return RangeResponse.decode(answer!).header!.revision;
}

/** One call for each key, over one connection; gives the answers. Throws if one fails. */
async function eachCall(
  endpoint: string,
  identity: ClientIdentity,
  operation: Operation,
  message: Uint8Array,
  keys: readonly Buffer[],
  inFlight: number,
): Promise<Buffer[]> {
  const answers: Buffer[] = [];
  let next = 0;
  let finish: () => void = () => {};
  let fail: (error: Error) => void = () => {};
  const start = (): void => {
    connection.call(next, message, keys[next]!, keyAt);
    next++;
  };
  const done = (_slot: number, ok: boolean, answer: Buffer | undefined): void => {
    if (!ok) {
      fail(new Error(`${operation} was refused by ${endpoint}`));
      return;
    }
    answers.push(Buffer.from(answer!));
    if (next < keys.length) start();
    else if (answers.length === keys.length) finish();
  };
  const connection = await Connection.open(endpoint, pathOf(operation), identity, done, (error) => fail(error));
  try {
    await new Promise<void>((resolve, reject) => {
      finish = resolve;
      fail = reject;
      while (next < Math.min(inFlight, keys.length)) start();
      connection.flush();
    });
    return answers;
  } finally {
    connection.close();
  }
}
