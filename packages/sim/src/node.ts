/** A machine with a member on it: what stays (disk, name) and what comes and goes (the process, the member in it). */
import { type Clock, type Random, silentLogger } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { AlarmType, fromUtf8, type raftpb } from "@quorate/proto";
import type { ServiceTable } from "@quorate/rpc";
import {
  BootstrapError,
  type FaultPoint,
  httpRouter,
  Member,
  peerEndpoints,
  type ServerConfig,
  serviceTable,
  versionOf,
} from "@quorate/server";
import type { Store } from "@quorate/store";
import type { CorruptionCheck } from "./check/corruption.ts";
import type { HashCheck } from "./check/hashes.ts";
import type { RaftCheck } from "./check/raft.ts";
import { type Safety, Violation, violate } from "./check/safety.ts";
import { ProcessDisk, ProcessKeyspaces } from "./disk.ts";
import { DiskFaults } from "./disk-faults.ts";
import { type LogEnd, logEndOf } from "./log-end.ts";
import type { Network } from "./network.ts";
import type { SimOptions } from "./options.ts";
import { misguide, twistOf } from "./planted.ts";
import type { Story } from "./report/story.ts";
import { Sabotage } from "./sabotage.ts";
import { Process, ProcessClock, type Scheduler } from "./scheduler.ts";

/** Operations of a disk that may fail by themselves. */
const DISK_OPERATIONS = ["open", "read", "write", "sync", "resize", "rename", "remove", "list", "makeDir", "syncDir"] as const;

/** Thrown at a fault point: the process is gone. */
class Crash extends Error {}

/** A fault point, or the writing of a snapshot that comes in. */
export type CrashPoint = FaultPoint | "receiving";

export interface CrashPlan {
  readonly point: CrashPoint;
  /** It crashes when it comes by there for this time. */
  passes: number;
  /** It goes on for so many operations of its disk. */
  readonly operations: number;
}

export interface NodeDeps {
  readonly options: SimOptions;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly network: Network;
  readonly safety: Safety;
  readonly raftCheck: RaftCheck;
  readonly hashCheck: HashCheck;
  readonly corruptionCheck: CorruptionCheck;
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
  readonly #diskClock: Clock;
  process: Process | undefined;
  clock: ProcessClock | undefined;
  /** Set while the member takes requests. */
  member: Member | undefined;
  services: ServiceTable | undefined;
  /** Where it crashes next; this outlives the process. */
  crashPlan: CrashPlan | undefined;
  /** How often each point was passed, and how often it was the end. */
  readonly passes = new Map<CrashPoint, { passed: number; crashed: number }>();
  /** It refused to start on its damaged disk. */
  refused = false;
  /** A process of it has run: it belongs, or belonged, to the cluster. */
  hasRun = false;
  /** It does not know the cluster yet that it is to join: not started, or started in vain. */
  hasNotJoined: boolean;
  /** Its member was removed from the cluster and has ended. */
  gone = false;
  /** Its member's id, once it has run. */
  #memberId = 0n;
  #config: ServerConfig;
  /** Faults of the disk at present. */
  slowSyncUntilMs = 0;
  slowTurns = false;
  starts = 0;
  readonly #faults: DiskFaults;
  readonly #sabotage: Sabotage;
  /** Since when its member has applied the alarm CORRUPT that names it, in this process. */
  namedSinceMs: number | undefined;

  constructor(name: string, deps: NodeDeps) {
    this.name = name;
    this.#deps = deps;
    this.#config = deps.config;
    this.hasNotJoined = !deps.config.isNewCluster;
    this.#random = deps.random.fork(name);
    const { options, scheduler } = deps;
    const diskRandom = this.#random.fork("disk");
    const clock: Clock = (this.#diskClock = {
      wallMs: () => scheduler.nowMs,
      monotonicMs: () => scheduler.nowMs,
      after: (delayMs, task) => scheduler.after(delayMs, task, this.process),
      every: () => violate("SIM", "a disk has no periods"),
      endOfTurn: () => violate("SIM", "a disk has no turns"),
    });
    const syncDelayMs = () => {
      const slow = scheduler.nowMs < this.slowSyncUntilMs || (options.slowSyncChance > 0 && diskRandom.unit() < options.slowSyncChance);
      return diskRandom.unit() * (slow && this.#deps.network.links.faulty ? options.slowSyncMs : options.syncMs);
    };
    this.#disk = new MemoryDisk({ clock, syncDelayMs });
    this.#keyspaces = new MemoryKeyspaceOpener(this.#disk, { clock, writeDelayMs: () => diskRandom.unit() * options.backendWriteMs });
    const { walDir, storeDir } = deps.config;
    const place = { keyspaces: this.#keyspaces, storePath: `${storeDir}/db`, tell: (text: string) => deps.story.tell(name, text) };
    this.#faults = new DiskFaults({ ...place, disk: this.#disk, random: this.#random.fork("disk faults"), walDir });
    this.#sabotage = new Sabotage({ ...place, random: this.#random.fork("sabotage") });
  }

  /** Its member's id, 0n before it has run. */
  get memberId(): bigint {
    return this.#memberId;
  }

  /** Alterations of its store that are still there. */
  get alterations(): readonly { readonly key: string; readonly revision: number }[] {
    return this.#sabotage.standing;
  }

  /** What its store holds differs, or may differ, from what it should. */
  get isAltered(): boolean {
    return this.#sabotage.standing.length > 0;
  }

  /** Its last start ended because it differs from others, or they from it. */
  foundDifference = false;

  /** How often its store was made to differ. */
  timesAltered = 0;

  /** Makes its store differ from the others'; false where there is nothing to alter. */
  alter(): boolean {
    if (this.#memberId === 0n || !this.#sabotage.alter()) return false;
    this.timesAltered++;
    this.#deps.corruptionCheck.altered(this.#memberId);
    return true;
  }

  /** An operator has given the machine up: it stays down. */
  condemn(): void {
    this.crash("kill");
    this.refused = true;
  }

  /** Where its peers reach it. */
  get urls(): readonly string[] {
    return this.#config.initialCluster.get(this.name)!.map(({ text }) => text);
  }

  /** Its peer URL. */
  get url(): string {
    return this.urls[0];
  }

  /** Whether it was one of those that formed the cluster. */
  get isFounder(): boolean {
    return this.#config.isNewCluster;
  }

  /** The end of its log on the disk: undefined where that cannot be read. */
  get logEnd(): LogEnd | undefined {
    return this.damaged ? undefined : logEndOf(this.#disk, this.#config.walDir);
  }

  /** It runs as what it is to be, or never will. */
  get isSettled(): boolean {
    return this.refused || this.member !== undefined;
  }

  /** Lets somebody lay out the disk before the first start; then the machine loses power. */
  async furnish(
    lay: (machine: { disk: MemoryDisk; keyspaces: MemoryKeyspaceOpener; clock: Clock }, config: ServerConfig) => Promise<void>,
  ) {
    await lay({ disk: this.#disk, keyspaces: this.#keyspaces, clock: this.#diskClock }, this.#config);
    this.#disk.crash(this.#random);
  }

  /** Another configuration for the next start. */
  reconfigure(config: ServerConfig): void {
    this.#config = config;
  }

  /** The machine is taken away. */
  retire(): void {
    this.crash("kill");
    this.gone = true;
  }

  get down(): boolean {
    return this.process === undefined || !this.process.alive;
  }

  /** What was synced on its disk has gone bad: it may refuse to start, and then stays down. */
  get damaged(): boolean {
    return this.#faults.isDamaged || this.refused;
  }

  /** Starts a process on what the disk holds. @param arm called when the process is there and has not begun yet */
  start(arm: () => void = () => {}): void {
    if (this.gone) return;
    const { scheduler, options, story, network, raftCheck } = this.#deps;
    const process = new Process(this.name);
    const rate = 1 + (2 * this.#random.unit() - 1) * options.drift;
    const clock = new ProcessClock(scheduler, process, rate);
    const turnRandom = this.#random.fork(`turns ${this.starts}`);
    clock.turnDelayMs = () => turnRandom.unit() * (this.slowTurns ? 30 : options.turnMs);
    this.process = process;
    this.clock = clock;
    this.member = undefined;
    this.services = undefined;
    this.namedSinceMs = undefined;
    story.tell(this.name, `starts, clock rate ${rate.toFixed(4)}`);
    const random = this.#random.fork(`start ${this.starts++}`);
    const twist = twistOf(options.bug, random.fork("twist"));
    let started: Member | undefined;
    this.#faults.begin();
    arm();
    this.#faults.receiving = () => {
      if (process.alive) this.#pass("receiving");
    };
    Member.start(this.#config, {
      clock,
      random,
      disk: new ProcessDisk(this.#disk, process, twist),
      keyspaces: new ProcessKeyspaces(this.#keyspaces, process, twist),
      logger: silentLogger,
      walSegmentBytes: options.segmentBytes,
      faults: (point) => {
        if (point === "after-snapshot-install" && started !== undefined) this.#watch(started);
        if (process.alive) this.#pass(point);
      },
      onRaft: (raft) => {
        raftCheck.watch(this.name, raft, (error) => this.#deps.fail(error));
        process.onEnd(() => raftCheck.forget(this.name));
      },
      callPeer: (url, path, body, timeoutMs) => network.ports.call(this.name, process, { url, path, body, timeoutMs }),
      openTransport: async (request) => network.open(this.name, process, request, this.urls),
      onEnd: (error) => {
        if (process.alive) this.#ended(error);
      },
    }).then(
      (member) => {
        if (!process.alive) return;
        this.#look(() => {
          started = member;
          this.hasRun = true;
          this.foundDifference = false;
          this.hasNotJoined = false;
          this.#memberId = member.id;
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

  /** The process comes by a point where it may be made to crash. */
  #pass(point: CrashPoint): void {
    let count = this.passes.get(point);
    if (count === undefined) this.passes.set(point, (count = { passed: 0, crashed: 0 }));
    count.passed++;
    const plan = this.crashPlan;
    if (plan?.point !== point || --plan.passes > 0) return;
    this.crashPlan = undefined;
    count.crashed++;
    this.#deps.story.tell(this.name, `crashes at ${point}, ${plan.operations} operations on`);
    if (plan.operations > 0) {
      this.crashAtDisk(plan.operations);
      return;
    }
    this.crash("power");
    throw new Crash(point);
  }

  /** Answers at the member's peer URLs. */
  #listen(member: Member, process: Process): void {
    const route = httpRouter(peerEndpoints(member, versionOf(member)));
    const answer = async (path: string, asked: Uint8Array | undefined) => {
      const sent = { method: asked === undefined ? "GET" : "POST", path, query: "", headers: new Map(), body: asked ?? new Uint8Array(0) };
      const { status, body, headers } = await route({ ...sent, peerAddress: "", peerCommonName: undefined });
      return { status, body: typeof body === "string" ? fromUtf8(body) : body, clusterId: headers?.["x-etcd-cluster-id"] };
    };
    for (const url of this.urls) this.#deps.network.ports.listen(url, { name: this.name, process, answer });
  }

  /** Sees to it that every entry applied to the member's present store is looked at. */
  #watch(member: Member): void {
    const { store } = member;
    const { safety, hashCheck, story } = this.#deps;
    this.#look(() => safety.opened(this.name, store, this.isAltered));
    this.#noteNaming(member.id, store);
    const watch = (entry: raftpb.Entry, apply: () => ReturnType<Store["apply"]> | undefined) => {
      const applied = apply();
      const { index, term } = entry;
      const revision = store.mvcc.currentRevision;
      story.tell(this.name, () => `applies ${index} of term ${term} to revision ${revision}`, undefined, index * 65_537 + revision);
      const { isAltered, timesAltered } = this;
      const isSound = () => this.timesAltered === timesAltered;
      this.#look(() => {
        safety.applied(this.name, store, entry, applied, isAltered);
        if (!isAltered) hashCheck.applied(this.name, store, entry.index, (error) => this.#deps.fail(error), isSound);
      });
      this.#noteNaming(member.id, store);
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
      this.#look(() => this.#countLearners(store));
    };
  }

  /** SIM-10. */
  #countLearners({ membership }: Store): void {
    const { maxLearners } = this.#deps.options;
    const learners = membership.members().filter(({ isLearner }) => isLearner).length;
    if (learners > maxLearners) violate("SIM-10", `${this.name} has ${learners} learners, and --max-learners is ${maxLearners}`);
  }

  #noteNaming(memberId: bigint, { alarms }: Store): void {
    const isNamed = alarms.corrupt && alarms.list(AlarmType.CORRUPT).some((alarm) => alarm.memberId === memberId);
    this.namedSinceMs = isNamed ? (this.namedSinceMs ?? this.#deps.scheduler.nowMs) : undefined;
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
    // An end without an error is that of a member which was removed, and so is a start that is refused for it.
    if (this.#deps.safety.isRemoved(this.#memberId) && (error === undefined || error instanceof BootstrapError)) {
      this.gone = true;
      return;
    }
    // It could not reach anybody, or the membership has changed since it was told whom to join.
    const isJoining = !this.#config.isNewCluster && error instanceof Error && error.name === "JoinError";
    if (isJoining && !error.message.includes("started before")) {
      this.hasNotJoined = true;
      return;
    }
    // It differs from others, or others from it, and was told to look before it takes part.
    const { corruptionCheck } = this.#deps;
    if (corruptionCheck.isAnyAltered && error instanceof Error && error.message.endsWith("found data inconsistency with peers")) {
      this.foundDifference = true;
      return;
    }
    const reason = this.#faults.reasonOf(error);
    if (reason === "damage") this.refused = true;
    if (reason !== undefined) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : "no error";
    this.#deps.fail(new Violation(`SIM-9: ${this.name} ended, and nothing was done to it that would explain it: ${text}`));
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

  /** The disk fails: full for a while, an operation that fails once, or a read at the next start. */
  failDisk(kind: "full" | "once" | "read"): void {
    if (this.down !== (kind === "read") || this.refused) return;
    const count = this.#random.below(20);
    if (kind === "full") this.#faults.fail("NoSpace", ["write", "resize"], count, Number.POSITIVE_INFINITY);
    else if (kind === "once") this.#faults.fail("Io", DISK_OPERATIONS, count, 1);
    else this.start(() => this.#faults.fail("Io", ["open", "read", "list"], count, 1));
  }

  /** The machine loses power in the middle of an operation of its disk, after `count` others; if it is down it is started for that. */
  crashAtDisk(count: number): void {
    if (this.refused) return;
    const arm = () =>
      this.#faults.crash(count, (operation) => {
        this.#deps.story.tell(this.name, `crashes in a ${operation}`);
        this.crash("power");
        throw new Crash(operation);
      });
    if (this.down) this.start(arm);
    else arm();
  }

  failBackend(): void {
    if (!this.down) this.#faults.failStore("Io");
  }

  healDisk(): void {
    this.#faults.heal();
    this.slowSyncUntilMs = 0;
  }

  /** What was synced goes bad: a bit or a sector of the log, or the store as a whole. Only while the process is down. */
  damage(): boolean {
    return this.#faults.damage();
  }
}
