/** A machine with a member on it: what stays (disk, name) and what comes and goes (the process, the member in it). */
import { type Clock, DiskError, type Random, silentLogger } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromUtf8, type raftpb } from "@quorate/proto";
import type { ServiceTable } from "@quorate/rpc";
import { BootstrapError, type FaultPoint, httpRouter, Member, type ServerConfig, serviceTable } from "@quorate/server";
import type { Store } from "@quorate/store";
import { readWal, WalDamageError, WalError } from "@quorate/wal";
import { type Safety, violate } from "./check/safety.ts";
import { ProcessDisk, ProcessKeyspaces } from "./disk.ts";
import type { Network } from "./network.ts";
import type { SimOptions } from "./options.ts";
import { misguide, twistOf } from "./planted.ts";
import type { Story } from "./report/story.ts";
import { Process, ProcessClock, type Scheduler } from "./scheduler.ts";

/** Thrown at a fault point: the process is gone. */
class Crash extends Error {}

export interface NodeDeps {
  readonly options: SimOptions;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly network: Network;
  readonly safety: Safety;
  readonly story: Story;
  readonly config: ServerConfig;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
}

export class Node {
  readonly name: string;
  readonly #deps: NodeDeps;
  readonly #random: Random;
  readonly #disk: MemoryDisk;
  readonly #keyspaces: MemoryKeyspaceOpener;
  process: Process | undefined;
  clock: ProcessClock | undefined;
  /** Set while the member takes requests. */
  member: Member | undefined;
  services: ServiceTable | undefined;
  /** Where the next pass crashes. */
  crashAt: FaultPoint | undefined;
  /** What was synced went bad on its disk: it may refuse to start, and then stays down. */
  flipped = false;
  /** It refused to start on its damaged disk. */
  refused = false;
  /** Faults of the disk at present. */
  slowSyncUntilMs = 0;
  slowTurns = false;
  starts = 0;
  /** Faults under which ending is no wonder: the disk has failed this process. */
  #diskFailed = false;

  constructor(name: string, deps: NodeDeps) {
    this.name = name;
    this.#deps = deps;
    this.#random = deps.random.fork(name);
    const { options, scheduler } = deps;
    const diskRandom = this.#random.fork("disk");
    const clock: Clock = {
      wallMs: () => scheduler.nowMs,
      monotonicMs: () => scheduler.nowMs,
      after: (delayMs, task) => scheduler.after(delayMs, task, this.process),
      every: () => violate("SIM", "a disk has no periods"),
      endOfTurn: () => violate("SIM", "a disk has no turns"),
    };
    const syncDelayMs = () => {
      const slow = scheduler.nowMs < this.slowSyncUntilMs || (options.slowSyncChance > 0 && diskRandom.unit() < options.slowSyncChance);
      return diskRandom.unit() * (slow && this.#deps.network.faulty ? options.slowSyncMs : options.syncMs);
    };
    this.#disk = new MemoryDisk({ clock, syncDelayMs });
    this.#keyspaces = new MemoryKeyspaceOpener(this.#disk, { clock, writeDelayMs: () => diskRandom.unit() * options.backendWriteMs });
  }

  /** Alive and not refusing: it counts for a quorum. */
  get healthy(): boolean {
    return !this.refused;
  }

  get down(): boolean {
    return this.process === undefined || !this.process.alive;
  }

  /** Starts a process on what the disk holds. */
  start(): void {
    const { scheduler, options, story, network, config } = this.#deps;
    const process = new Process(this.name);
    const rate = 1 + (2 * this.#random.unit() - 1) * options.drift;
    const clock = new ProcessClock(scheduler, process, rate);
    const turnRandom = this.#random.fork(`turns ${this.starts}`);
    clock.turnDelayMs = () => turnRandom.unit() * (this.slowTurns ? 30 : options.turnMs);
    this.process = process;
    this.clock = clock;
    this.member = undefined;
    this.services = undefined;
    this.crashAt = undefined;
    this.#diskFailed = false;
    story.tell(this.name, `starts, clock rate ${rate.toFixed(4)}`);
    const random = this.#random.fork(`start ${this.starts++}`);
    const twist = twistOf(options.bug, random.fork("twist"));
    let started: Member | undefined;
    Member.start(config, {
      clock,
      random,
      disk: new ProcessDisk(this.#disk, process, twist),
      keyspaces: new ProcessKeyspaces(this.#keyspaces, process, twist),
      logger: silentLogger,
      walSegmentBytes: options.segmentBytes,
      faults: (point) => {
        if (point === "after-snapshot-install" && started !== undefined) this.#watch(started);
        if (this.crashAt !== point || !process.alive) return;
        story.tell(this.name, `crashes at ${point}`);
        this.crash("power");
        throw new Crash(point);
      },
      callPeer: (url, path, body, timeoutMs) => network.call(this.name, process, { url, path, body, timeoutMs }),
      openTransport: async (request) => network.open(this.name, process, request),
      onEnd: (error) => {
        if (process.alive) this.#ended(error);
      },
    }).then(
      (member) => {
        if (!process.alive) return;
        this.#look(() => {
          started = member;
          this.member = member;
          this.services = serviceTable(member);
          misguide(options.bug, member);
          this.#listen(member, process);
          this.#watch(member);
          story.tell(this.name, `runs: term ${member.term} applied ${member.appliedIndex} revision ${member.store.mvcc.currentRevision}`);
        });
      },
      (error: unknown) => {
        if (process.alive) this.#ended(error);
      },
    );
  }

  /** Answers at the member's peer URLs. */
  #listen(member: Member, process: Process): void {
    const route = httpRouter(member.leases.peerEndpoints());
    const answer = async (path: string, body: Uint8Array) => {
      const request = { method: "POST", path, query: "", headers: new Map(), body, peerAddress: "", peerCommonName: undefined };
      const response = await route(request);
      return { status: response.status, body: typeof response.body === "string" ? fromUtf8(response.body) : response.body };
    };
    for (const url of this.#deps.config.initialCluster.get(this.name)!)
      this.#deps.network.listen(url.text, { name: this.name, process, answer });
  }

  /** Sees to it that every entry applied to the member's present store is looked at. */
  #watch(member: Member): void {
    const { store } = member;
    const { safety, story } = this.#deps;
    this.#look(() => safety.opened(this.name, store));
    const watch = (entry: raftpb.Entry, apply: () => ReturnType<Store["apply"]> | undefined) => {
      const applied = apply();
      story.tell(this.name, `applies ${entry.index} of term ${entry.term} to revision ${store.mvcc.currentRevision}`);
      this.#look(() => safety.applied(this.name, store, entry, applied));
      return applied;
    };
    const apply = store.apply.bind(store);
    const applyConfChange = store.applyConfChange.bind(store);
    store.apply = (entry) => watch(entry, () => apply(entry))!;
    store.applyConfChange = (entry, change, confState) => {
      watch(entry, () => {
        applyConfChange(entry, change, confState);
        return undefined;
      });
    };
  }

  /** What is wrong is told to the world; a member would only end by it. */
  #look(look: () => void): void {
    try {
      look();
    } catch (error) {
      this.#deps.fail(error);
    }
  }

  #ended(error: unknown): void {
    const { story } = this.#deps;
    story.tell(this.name, `ended: ${error instanceof Error ? error.message : String(error)}`);
    this.process?.end();
    this.member = undefined;
    this.services = undefined;
    this.#disk.kill(this.#random);
    if (this.#diskFailed) return;
    if (this.flipped && isDamage(error)) {
      this.refused = true;
      return;
    }
    this.#deps.fail(error instanceof Error ? error : new Error(`${this.name} ended without an error`));
  }

  /** The machine loses power, or the process alone is killed. */
  crash(kind: "power" | "kill"): void {
    if (this.down) return;
    this.#deps.story.tell(this.name, kind === "power" ? "loses power" : "is killed");
    this.process!.end();
    this.member = undefined;
    this.services = undefined;
    if (kind === "power") this.#disk.crash(this.#random);
    else this.#disk.kill(this.#random);
    this.healDisk();
  }

  /** Ends in order; gives up and kills after a while. */
  stop(): void {
    const { member, process } = this;
    if (member === undefined || process === undefined) return;
    this.#deps.story.tell(this.name, "is told to stop");
    this.member = undefined;
    this.services = undefined;
    const end = () => {
      if (process.alive) this.crash("kill");
    };
    member
      .handOver()
      .then(() => member.stop())
      .then(end, end);
    this.#deps.scheduler.after(20_000, end);
  }

  /** From now on writes fail at the end of the space there is, or `code` once at the next operation of that kind. */
  failDisk(kind: "NoSpace" | "Io"): void {
    if (this.down) return;
    const random = this.#random;
    let left = random.below(20);
    this.#disk.fault = ({ kind: what }) => {
      if (this.down || (kind === "NoSpace" && what !== "write" && what !== "resize")) return undefined;
      if (what === "list" || left-- > 0) return undefined;
      this.#diskFailed = true;
      this.#deps.story.tell(this.name, `disk: ${kind} at ${what}`);
      return kind;
    };
  }

  /** The machine loses power in the middle of an operation of its disk, after `count` others; if it is down it is started for that. */
  crashAtDisk(count: number): void {
    if (this.refused) return;
    let left = count;
    this.#disk.fault = ({ kind }) => {
      if (this.down || left-- > 0) return undefined;
      this.#deps.story.tell(this.name, `crashes in a ${kind} of its disk`);
      this.crash("power");
      throw new Crash(kind);
    };
    if (this.down) this.start();
  }

  failBackend(): void {
    if (this.down) return;
    this.#keyspaces.fault = () => {
      this.#diskFailed = true;
      this.#deps.story.tell(this.name, "backend: Io at write");
      return "Io";
    };
  }

  healDisk(): void {
    this.#disk.fault = undefined;
    this.#keyspaces.fault = undefined;
    this.slowSyncUntilMs = 0;
  }

  /** What is on the disk goes bad: a bit of the log, or the store as a whole. Only while the process is down. */
  damage(): boolean {
    return this.#random.below(4) === 0 ? this.#damageStore() : this.#flipBit();
  }

  #damageStore(): boolean {
    const path = `${this.#deps.config.storeDir}/db`;
    try {
      this.#keyspaces.damage(path);
    } catch {
      // There is none yet.
      return false;
    }
    this.#deps.story.tell(this.name, `the store in ${path} is damaged`);
    this.flipped = true;
    return true;
  }

  /** Flips a bit in a part of the log that the log itself says was synced. */
  #flipBit(): boolean {
    const { walDir } = this.#deps.config;
    const places: { path: string; from: number; to: number }[] = [];
    try {
      const reader = readWal(this.#disk, walDir);
      let step = reader.next();
      let last: { path: string; from: number } | undefined;
      while (step.done !== true) {
        const path = `${walDir}/${step.value.segment.name}`;
        if (last !== undefined) places.push({ ...last, to: last.path === path ? step.value.offset : last.from + 16 });
        last = { path, from: step.value.offset };
        step = reader.next();
      }
      const { segments, durableBytes } = step.value;
      const tail = `${walDir}/${segments[segments.length - 1].name}`;
      const synced = places.filter(({ path, to }) => path !== tail || to <= durableBytes);
      if (synced.length === 0) return false;
      const { path, from, to } = synced[this.#random.below(synced.length)];
      const position = from + this.#random.below(to - from);
      this.#disk.corrupt(path, position, 1 << this.#random.below(8));
      this.#deps.story.tell(this.name, `a bit flips in ${path} at ${position}`);
    } catch {
      // No log yet, or none that can be read any more.
      return false;
    }
    this.flipped = true;
    return true;
  }
}

/** A member's way to say that it will not serve what its disk holds. */
function isDamage(error: unknown): boolean {
  if (error instanceof DiskError && error.code === "Damaged") return true;
  return error instanceof WalDamageError || error instanceof WalError || error instanceof BootstrapError;
}
