/**
 * A cluster for a test: real members on real sockets, in memory, with what tests do to them.
 *
 *     await using cluster = await testCluster({ members: 3 });
 *     const client = cluster.client();
 *     await cluster.leader.kill();
 */
import type { Client } from "@quorate/client";
import { type ClientOptions, connect } from "@quorate/client/node";
import { freePorts } from "@quorate/embed/node";
import { check, checkOptions, INTEGER, OBJECT, oneOf, TEXT } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { GrpcCode, services, WatchService } from "@quorate/proto";
import type { ConfigFile } from "@quorate/server";
import { ClusterMember } from "./cluster-member.ts";
import type { CallFaults } from "./gate.ts";
import { clusters } from "./leftovers.ts";
import { EMPTY, type Point, pointOf, returnTo } from "./points.ts";
import type { TestMember } from "./test-member.ts";

/** What testCluster() takes. */
export interface ClusterOptions {
  /** From 1 to 9; default 1. */
  readonly members?: number;
  /**
   * Options of all members, as in a config file. Names, addresses and the data directory are the
   * cluster's own. "quota-backend-bytes" is 32 MiB unless set, so that it is filled soon.
   */
  readonly config?: ConfigFile;
}

/** A call that is to fail. */
export interface CallFailure {
  /** The method's name, such as "Put" or "LeaseGrant", or its path; default: any. */
  readonly method?: string;
  /** gRPC's name of the status; default "Unavailable". */
  readonly code?: keyof typeof GrpcCode;
  readonly message?: string;
  /** How many calls fail; default 1. */
  readonly times?: number;
  /** The call is executed, and its response lost. Default: it is not executed. */
  readonly isExecuted?: boolean;
}

const MAX_MEMBERS = 9;
const MAX_ATTEMPTS = 3;
const QUOTA_BYTES: number = 32 * 1024 * 1024;
const FILLER_BYTES: number = 1024 * 1024;
/** Where `fillQuota` writes. */
export const FILLER_PREFIX = "quorate-testing/filler/";
/** How long what a helper waits for may take. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 10;
const DEFAULT_MAX_TXN_OPS = 128;

/**
 * Starts a cluster; resolves when all members are ready. Rejects with ConfigError for a
 * configuration that no member starts with; nothing is left then.
 */
export async function testCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  checkOptions("testCluster", options, { members: INTEGER, config: OBJECT });
  const { members = 1, config = {} } = options;
  if (members < 1 || members > MAX_MEMBERS)
    throw new RangeError(`testCluster: members must be from 1 to ${MAX_MEMBERS}`);
  for (let attempt = 1; ; attempt++) {
    const cluster = new TestCluster(configsOf(await freePorts(2 * members), config));
    clusters.add(cluster);
    try {
      await cluster.start();
      return cluster;
    } catch (error) {
      await cluster.close();
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (!isTaken || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

function configsOf(ports: readonly number[], config: ConfigFile): ConfigFile[] {
  const urlOf = (at: number): string => `http://127.0.0.1:${ports[at]}`;
  const count = ports.length / 2;
  const members = Array.from({ length: count }, (_, i) => ({
    name: `m${i}`,
    client: urlOf(i),
    peer: urlOf(count + i),
  }));
  return members.map(({ name, client, peer }) => ({
    "quota-backend-bytes": QUOTA_BYTES,
    "heartbeat-interval": 50,
    "election-timeout": 500,
    ...config,
    name,
    "initial-cluster": members.map((one) => `${one.name}=${one.peer}`).join(","),
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
  }));
}

/** The path of a method that was named by its last part, or by all of it. */
function pathOf(method: string): string {
  if (method.startsWith("/")) return method;
  const paths = services.flatMap((service) =>
    Object.values(service.methods as Record<string, { readonly path: string }>),
  );
  const found = paths.find(({ path }) => path.endsWith(`/${method}`));
  if (found === undefined) throw new RangeError(`failNext: there is no method ${method}`);
  return found.path;
}

/** A cluster of a test, and what a test does to it. */
export class TestCluster implements AsyncDisposable {
  readonly #members: readonly ClusterMember[];
  readonly #clients = new Set<Client>();
  readonly #leaseOffset = { ms: 0 };
  readonly #points = new Map<string, Point>();
  readonly #maxTxnOps: number;
  #failures: { path: string | undefined; failure: CallFailure; left: number }[] = [];
  #closing: Promise<void> | undefined;

  /** Made by testCluster(). */
  constructor(configs: readonly ConfigFile[]) {
    const faults: CallFaults = { failureOf: (path) => this.#failureOf(path) };
    const surroundings = { faults, leaseOffset: this.#leaseOffset };
    this.#members = configs.map((config) => new ClusterMember(config, surroundings));
    this.#maxTxnOps = configs[0]?.["max-txn-ops"] ?? DEFAULT_MAX_TXN_OPS;
  }

  get members(): readonly TestMember[] {
    return this.#members;
  }

  /** Starts members that do not run, for example after `kill`; resolves when all are ready. */
  async start(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.start()));
    await Promise.all(this.#members.map((member) => member.ready()));
  }

  /** The client URLs of all members. */
  get endpoints(): readonly string[] {
    return this.#members.map(({ endpoint }) => endpoint);
  }

  /** A client of all members, or of `options.endpoints`; the cluster closes it. */
  client(options: Partial<ClientOptions> = {}): Client {
    const client = connect({ endpoints: this.endpoints, ...options });
    this.#clients.add(client);
    return client;
  }

  /** The member that leads. Throws while none of the running members knows that it does. */
  get leader(): TestMember {
    const newest = newestLeader(this.#members);
    if (newest === undefined) throw new Error("no member leads now: see TestCluster.leading()");
    return newest;
  }

  /**
   * Resolves with the leader when there is one. Rejects after 30 seconds without.
   * @param among members of which one is to lead, such as one side of a partition
   */
  leading(among: readonly TestMember[] = this.#members): Promise<TestMember> {
    return this.#leading(among);
  }

  async #leading(among: readonly TestMember[] = this.#members): Promise<ClusterMember> {
    let found: ClusterMember | undefined;
    await until("a leader", () => {
      found = newestLeader(this.#members.filter((one) => among.includes(one)));
      return found !== undefined;
    });
    return found as ClusterMember;
  }

  /**
   * Cuts the links between groups of members; those within a group stay, and so do all clients'.
   * A member that is in no group is alone. Replaces an earlier partition.
   */
  partition(...groups: readonly (readonly TestMember[])[]): void {
    for (const member of this.#members) {
      const group = groups.find((one) => one.includes(member)) ?? [member];
      const others = this.#members.filter((other) => other !== member && !group.includes(other));
      member.gate.cut = new Set(others.map(({ id }) => id));
      member.gate.cutUrls = new Set(others.map(({ peerUrl }) => peerUrl));
    }
  }

  /** All links are whole, all disks fast, paused members go on, and no call is to fail. */
  heal(): void {
    this.#failures = [];
    this.partition(this.#members);
    for (const member of this.#members) {
      member.slowDisk(0);
      member.resume();
    }
  }

  /** Calls that come to any member fail, for as many times as it says. */
  failNext(failure: CallFailure = {}): void {
    const { method, times = 1, code } = failure;
    check("failNext", "times", times, INTEGER);
    if (code !== undefined) check("failNext", "code", code, oneOf(Object.keys(GrpcCode)));
    const path = method === undefined ? undefined : pathOf(method);
    this.#failures.push({ path, failure, left: times });
  }

  #failureOf(path: string): ReturnType<CallFaults["failureOf"]> {
    const found = this.#failures.find((one) => one.path === undefined || one.path === path);
    if (found === undefined) return undefined;
    found.left--;
    if (found.left <= 0) this.#failures = this.#failures.filter((one) => one !== found);
    const {
      code = "Unavailable",
      message = "a failure of the test",
      isExecuted = false,
    } = found.failure;
    return { code: GrpcCode[code], message, isExecuted };
  }

  /**
   * The time of leases goes on by so much, and that of all else stays. Resolves when leases that
   * are over have ended.
   */
  async advanceLeases(seconds: number): Promise<void> {
    this.#leaseOffset.ms += seconds * 1000;
    await until("the end of leases", () => {
      // Another member may lead from one look to the next.
      const member = newestLeader(this.#members)?.launched.member;
      const nowMs = nodeClock.monotonicMs() + this.#leaseOffset.ms;
      return (
        member !== undefined &&
        [...member.store.lessor.all()].every(
          ({ id }) => (member.leases.counted(id)?.lease.expiryMs ?? 0) > nowMs,
        )
      );
    });
  }

  /**
   * Writes until the members have raised NOSPACE and refuse writes. The keys are below
   * FILLER_PREFIX; `freeQuota` removes them.
   */
  async fillQuota(): Promise<void> {
    const client = (await this.#leading()).client();
    const value = new Uint8Array(FILLER_BYTES);
    try {
      for (let i = 0; ; i++) await client.put(`${FILLER_PREFIX}${i}`, value);
    } catch (error) {
      if ((error as { code?: string }).code !== "NoSpace") throw error;
    } finally {
      client.close();
    }
  }

  /** Removes what `fillQuota` wrote, and disarms the alarm. */
  async freeQuota(): Promise<void> {
    const client = (await this.#leading()).client();
    try {
      const { header } = await client.delete(FILLER_PREFIX, { prefix: true });
      await client.compact(header.revision, { physical: true });
      const { alarms } = await client.alarmList();
      for (const alarm of alarms) await client.alarmDisarm(alarm);
    } finally {
      client.close();
    }
  }

  /**
   * Ends all watches, makes changes, and compacts the history up to them before a watch can go on:
   * each finds its revision compacted. Resolves with the compact revision.
   * @param change the changes that watches miss; by default two of a key of the cluster's own
   */
  async compactUnderWatches(change?: () => Promise<unknown>): Promise<number> {
    const { path } = WatchService.methods.Watch;
    const blocked = { path, failure: {}, left: Number.POSITIVE_INFINITY };
    this.#failures.push(blocked);
    const client = (await this.#leading()).client();
    try {
      for (const { streams } of this.#members) streams.end(path);
      await change?.();
      await client.put("quorate-testing/compacted", "1");
      const { header } = await client.delete("quorate-testing/compacted");
      await client.compact(header.revision, { physical: true });
      return header.revision;
    } finally {
      this.#failures = this.#failures.filter((one) => one !== blocked);
      client.close();
    }
  }

  /** Notes what the cluster holds now, under a name for `reset`. */
  async mark(name: string): Promise<void> {
    check("mark", "name", name, TEXT);
    this.#points.set(name, await pointOf((await this.#leading()).launched.member));
  }

  /**
   * Heals everything, starts members that do not run, and brings keys and leases back to a point of
   * `mark`, or to nothing; users, roles and alarms end. Revisions go on.
   */
  async reset(name?: string): Promise<void> {
    const point = name === undefined ? EMPTY : this.#points.get(name);
    if (point === undefined) throw new RangeError(`reset: there is no point ${name}`);
    this.heal();
    if (this.#members.some(({ isRunning }) => !isRunning)) await this.start();
    await returnTo((await this.#leading()).launched.member, point, this.#maxTxnOps);
  }

  /** Closes the clients and ends the members; nothing of the cluster is left. Can be repeated. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clusters.delete(this);
    for (const client of this.#clients) client.close();
    await Promise.all(this.#members.map((member) => member.kill()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** One that was cut off takes itself for the leader for a while. */
function newestLeader(members: readonly ClusterMember[]): ClusterMember | undefined {
  const leading = members.filter(({ isLeader, isPaused }) => isLeader && !isPaused);
  return leading.sort((a, b) => b.launched.member.term - a.launched.member.term)[0];
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS;
  while (!isSo()) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
