/**
 * Many leases on three members, each with a key, kept alive over all members for some minutes and
 * then left alone: none may be lost while it is kept alive, none may end early, and each must end
 * soon after its time.
 *
 *     ./dev soak leases [--leases 100000] [--minutes 5] [--ttl 60] [--size 3]
 *
 * Clients renew a lease after a third of its time, as Go's does, so they all end within a third of
 * their time when that stops. An end is seen by the deletion of the key on a watch; its lag is
 * counted from the answer to the last renewal and the time to live.
 */

import { setTimeout as delay } from "node:timers/promises";
import {
  fromUtf8,
  KVService,
  LeaseGrantRequest,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
  PutRequest,
  toLatin1,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { positive, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { TestClient } from "../test/support/client.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { Connection } from "./connection.ts";
import { eachField } from "./streams.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

export interface SoakOptions {
  readonly leases: number;
  readonly minutes: number;
  readonly ttlS: number;
  readonly size: number;
  /** Called with the progress, every ten seconds. */
  readonly say: (text: string) => void;
}

export interface SoakResult {
  /** Keep-alives that were answered. */
  readonly renewals: number;
  /** Streams that a member ended, and that were opened again. */
  readonly restarts: number;
  /** Leases that ended while they were kept alive. */
  readonly lost: number;
  /** Leases that ended before their time when they were not any more. */
  readonly early: number;
  readonly lagP50Ms: number;
  readonly lagP99Ms: number;
  readonly lagMostMs: number;
  /** From the first end to the last. */
  readonly endingMs: number;
  /**
   * While the leases were kept alive: processors that all members used together, and the most
   * memory that one had.
   */
  readonly processors: number;
  readonly residentMiB: number;
  /** Processors used while the leases ended. */
  readonly processorsEnding: number;
}

const streamsAMember = 8;
const inFlight = 256;
const tickMs = 20;
const reportMs = 10_000;
const goalP99Ms = 1000;
/** What may pass beyond the time to live before the run is given up. */
const patienceMs = 180_000;
const firstId = 1_000_000;
const mib = 2 ** 20;

/** Fields of WatchResponse, Event and KeyValue. */
const createdField = 3;
const eventsField = 11;
const typeField = 1;
const kvField = 2;
const keyField = 1;

const keyOf = (lease: number): string => `lease/${String(lease).padStart(8, "0")}`;

class Soak {
  readonly #options: SoakOptions;
  readonly #cluster: TestCluster;
  readonly #connections: Connection[] = [];
  /** The streams of keep-alives; undefined while one is being opened again. */
  readonly #keeping: ({ connection: Connection; stream: number } | undefined)[] = [];
  /**
   * By lease, on performance's clock: when its last renewal was sent and answered, and when its key
   * went.
   */
  readonly #sentMs: Float64Array;
  readonly #answeredMs: Float64Array;
  readonly #endedMs: Float64Array;
  #ended = 0;
  /** Leases that are granted; those before have their turn in keeping alive. */
  #granted = 0;
  #renewals = 0;
  #restarts = 0;
  #refused = 0;
  #isStopping = false;
  readonly #broken = Promise.withResolvers<never>();

  constructor(options: SoakOptions, cluster: TestCluster) {
    this.#options = options;
    this.#cluster = cluster;
    this.#sentMs = new Float64Array(options.leases);
    this.#answeredMs = new Float64Array(options.leases);
    this.#endedMs = new Float64Array(options.leases);
    this.#broken.promise.catch(() => {});
  }

  readonly #failed = (error: Error): void => this.#broken.reject(error);

  get #pids(): number[] {
    return this.#cluster.members.map((member) => member.pid!);
  }

  async #open(
    member: number,
    path: string,
    streamed?: (message: Uint8Array) => void,
    done?: (ok: boolean) => void,
    failed = this.#failed,
  ): Promise<Connection> {
    const connection = await Connection.open({
      url: this.#cluster.endpoints[member % this.#cluster.endpoints.length],
      paths: [path],
      identity: this.#cluster.identity,
      done: (_slot, ok) => done?.(ok),
      streamed: (_slot, message) => streamed?.(message),
      failed,
    });
    this.#connections.push(connection);
    return connection;
  }

  /** One call for each lease, a bounded number at a time. */
  async #each(path: string, messageOf: (lease: number) => Uint8Array): Promise<void> {
    let begun = 0;
    let finished = 0;
    const { promise: all, resolve } = Promise.withResolvers<void>();
    const next = (): void => {
      if (begun < this.#options.leases)
        connection.call(0, { path: 0, message: messageOf(begun++), patchAt: [] });
    };
    const connection = await this.#open(0, path, undefined, (ok) => {
      if (!ok) this.#failed(new Error(`${path} was refused`));
      if (++finished === this.#options.leases) resolve();
      else next();
    });
    for (let i = 0; i < inFlight; i++) next();
    connection.flush();
    await Promise.race([all, this.#broken.promise]);
  }

  async #watch(): Promise<void> {
    const { promise: created, resolve } = Promise.withResolvers<void>();
    const connection = await this.#open(0, WatchService.methods.Watch.path, (message) =>
      eachField(message, 0, message.length, (field, start, end) => {
        if (field === createdField && message[start] === 1) resolve();
        else if (field === eventsField) this.#event(message, start, end);
      }),
    );
    const value = WatchCreateRequest.create({
      key: fromUtf8("lease/"),
      rangeEnd: fromUtf8("lease0"),
    });
    connection.send(
      connection.openStream(0, 0),
      WatchRequest.encode({ requestUnion: { case: "createRequest", value } }),
    );
    connection.flush();
    await Promise.race([created, this.#broken.promise]);
  }

  #event(bytes: Uint8Array, start: number, end: number): void {
    let isDeleted = false;
    let lease = -1;
    eachField(bytes, start, end, (field, at, until) => {
      if (field === typeField) isDeleted = bytes[at] === 1;
      else if (field === kvField) {
        eachField(bytes, at, until, (inner, keyAt, keyEnd) => {
          if (inner === keyField) lease = Number(toLatin1(bytes, keyAt + "lease/".length, keyEnd));
        });
      }
    });
    if (!isDeleted) return;
    this.#endedMs[lease] = performance.now();
    this.#ended++;
  }

  #answered(message: Uint8Array): void {
    const { ID, TTL } = LeaseKeepAliveResponse.decode(message);
    this.#renewals++;
    if (TTL === 0) this.#refused++;
    else this.#answeredMs[Number(ID) - firstId] = performance.now();
  }

  async #openStreams(): Promise<void> {
    for (let at = 0; at < streamsAMember * this.#options.size; at++) await this.#openStream(at);
  }

  /**
   * A member ends a stream whose keep-alives it cannot answer, as when no leader is there: clients
   * open another.
   */
  async #openStream(at: number): Promise<void> {
    const { path } = LeaseService.methods.LeaseKeepAlive;
    this.#keeping[at] = undefined;
    const again = (): void => {
      this.#restarts++;
      this.#keeping[at]?.connection.close();
      this.#openStream(at).catch(this.#failed);
    };
    const connection = await this.#open(
      at,
      path,
      (message) => this.#answered(message),
      undefined,
      again,
    );
    this.#keeping[at] = { connection, stream: connection.openStream(0, 0) };
  }

  #renew(lease: number): void {
    const keeping = this.#keeping[lease % this.#keeping.length];
    if (keeping === undefined) return;
    const { connection, stream } = keeping;
    this.#sentMs[lease] = performance.now();
    connection.send(stream, LeaseKeepAliveRequest.encode({ ID: BigInt(firstId + lease) }));
  }

  /**
   * Renews every lease that is granted once in a third of its time, spread evenly, until it is
   * stopped.
   */
  async #keepAlive(): Promise<void> {
    const { leases, ttlS } = this.#options;
    const perMs = leases / ((ttlS * 1000) / 3);
    const startMs = performance.now();
    for (let at = 0; !this.#isStopping; ) {
      for (const due = Math.floor((performance.now() - startMs) * perMs); at < due; at++)
        if (at % leases < this.#granted) this.#renew(at % leases);
      for (const one of this.#keeping) one?.connection.flush();
      await this.#tick();
    }
    // What is still under way is answered soon, or not at all.
    for (let before = -1; before !== this.#renewals; await delay(500)) before = this.#renewals;
  }

  async #tick(): Promise<void> {
    await Promise.race([delay(tickMs), this.#broken.promise]);
  }

  /** Lets the time of the run pass. */
  async #wait(): Promise<void> {
    const endMs = performance.now() + this.#options.minutes * 60_000;
    for (let now = performance.now(); now < endMs; now = performance.now()) {
      await Promise.race([delay(Math.min(reportMs, endMs - now)), this.#broken.promise]);
      const left = `${((endMs - performance.now()) / 60_000).toFixed(1)} min to go`;
      const renewed = `${this.#renewals} renewals answered, ${this.#restarts} streams opened again`;
      this.#options.say(
        `${renewed}, ${this.#ended + this.#refused} leases lost, ${this.#memory()}, ${left}`,
      );
    }
  }

  /** Leases whose key is gone. */
  async #missing(): Promise<number> {
    const client = new TestClient(this.#cluster.members[0].clientAddress, this.#cluster.identity);
    try {
      const asked = { key: fromUtf8("lease/"), rangeEnd: fromUtf8("lease0"), countOnly: true };
      return (
        this.#options.leases - (await client.call(KVService.methods.Range, asked, 60_000)).count
      );
    } finally {
      client.close();
    }
  }

  #memory(): string {
    return this.#pids.map((pid) => `${(residentBytes([pid]) / mib).toFixed(0)} MiB`).join(" + ");
  }

  /** Waits until all are gone. */
  async #runOut(): Promise<void> {
    const { leases, ttlS, say } = this.#options;
    const giveUpMs = performance.now() + ttlS * 1000 + patienceMs;
    let reportedMs = performance.now();
    while (this.#ended < leases && performance.now() < giveUpMs) {
      await this.#tick();
      if (performance.now() - reportedMs < reportMs) continue;
      reportedMs = performance.now();
      say(`${this.#ended} of ${leases} leases have ended`);
    }
    if (this.#ended < leases)
      throw new Error(
        `${leases - this.#ended} leases have not ended ${patienceMs / 1000} s after their time`,
      );
  }

  async run(): Promise<SoakResult> {
    const { leases, ttlS, size, say } = this.#options;
    await this.#openStreams();
    const keeping = this.#keepAlive();
    keeping.catch(this.#failed);
    await this.#each(LeaseService.methods.LeaseGrant.path, (lease) => {
      // The answers come in about the order of the requests, and long before the lease's first
      // turn.
      this.#granted = Math.max(0, lease - 4 * inFlight);
      return LeaseGrantRequest.encode({ ID: BigInt(firstId + lease), TTL: ttlS }).slice();
    });
    this.#granted = leases;
    await this.#each(KVService.methods.Put.path, (lease) =>
      PutRequest.encode({ key: fromUtf8(keyOf(lease)), lease: BigInt(firstId + lease) }).slice(),
    );
    await this.#watch();
    say(`${leases} leases of ${ttlS} s, each with a key, on ${size} members`);
    const startMs = performance.now();
    const cpuStart = cpuSeconds(this.#pids);
    await this.#wait();
    this.#isStopping = true;
    await keeping;
    const keptMs = performance.now();
    const cpuKept = cpuSeconds(this.#pids);
    const residentMiB = Math.max(...this.#pids.map((pid) => residentBytes([pid]) / mib));
    const lost = Math.max(this.#ended, this.#refused, await this.#missing());
    say(
      `kept alive for ${((keptMs - startMs) / 60_000).toFixed(1)} minutes, ${lost} lost; now they are left alone`,
    );
    await this.#runOut();
    const ttlMs = ttlS * 1000;
    const ends = this.#endedMs.toSorted();
    const lags = this.#endedMs.map((ms, lease) => ms - this.#answeredMs[lease] - ttlMs).sort();
    const early = this.#endedMs.filter((ms, lease) => ms < this.#sentMs[lease] + ttlMs).length;
    return {
      renewals: this.#renewals,
      restarts: this.#restarts,
      lost,
      early,
      lagP50Ms: lags[Math.floor(leases * 0.5)],
      lagP99Ms: lags[Math.floor(leases * 0.99)],
      lagMostMs: lags[leases - 1],
      endingMs: ends[leases - 1] - ends[0],
      processors: ((cpuKept - cpuStart) * 1000) / (keptMs - startMs),
      processorsEnding: ((cpuSeconds(this.#pids) - cpuKept) * 1000) / (performance.now() - ends[0]),
      residentMiB,
    };
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

/** Runs it on a cluster of its own. */
export async function soakLeases(options: SoakOptions): Promise<SoakResult> {
  const cluster = await startCluster({ size: options.size });
  const soak = new Soak(options, cluster);
  try {
    return await soak.run();
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    soak.close();
    await cluster.destroy();
  }
}

const help = `./dev soak leases [OPTIONS]: many leases on three members, kept alive and then left alone

Ends with 1 if a lease was lost or ended early, or if the 99th percentile of the lag of the ends is ${goalP99Ms} ms or more.`;

async function main(): Promise<void> {
  const { values } = readArguments(help, {
    leases: valueOption("how many, each with a key (100000)", "100000"),
    minutes: valueOption("how long they are kept alive (5)", "5"),
    ttl: valueOption("their time to live in seconds (60)", "60"),
    size: valueOption("members (3)", "3"),
  });
  const leases = positive("leases", values.leases);
  const minutes = positive("minutes", values.minutes);
  const ttlS = positive("ttl", values.ttl);
  const size = positive("size", values.size);
  const fromMs = performance.now();
  const say = (text: string): void =>
    console.log(`${((performance.now() - fromMs) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  const result = await soakLeases({ leases, minutes, ttlS, size, say });
  const whole = (figure: number): string => Math.round(figure).toLocaleString("en");
  console.log(`
renewals answered      ${whole(result.renewals)}, ${result.restarts} streams opened again
leases lost            ${result.lost}
leases ended early     ${result.early}
lag of the ends        p50 ${whole(result.lagP50Ms)} ms, p99 ${whole(result.lagP99Ms)} ms, most ${whole(result.lagMostMs)} ms
all ended within       ${(result.endingMs / 1000).toFixed(1)} s
processors, ${size} members  ${result.processors.toFixed(2)} while kept alive, ${result.processorsEnding.toFixed(2)} while they ended
memory of a member     ${whole(result.residentMiB)} MiB at the most`);
  const isGood = result.lost === 0 && result.early === 0 && result.lagP99Ms < goalP99Ms;
  console.log(
    isGood
      ? "good"
      : `not good: none may be lost or early, and the p99 of the lag is to be below ${goalP99Ms} ms`,
  );
  process.exitCode = isGood ? 0 : 1;
}

if (import.meta.main) await main();
