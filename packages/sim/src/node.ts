/**
 * A machine with a member on it: what stays (disk, name) and what comes and goes (the process, the
 * member in it).
 */
import { FrontTwin } from "@quorate/front/testing";
import { type Clock, type Logger, type Random, silentLogger } from "@quorate/host";
import type { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/node";
import { Member } from "@quorate/member";
import { BootstrapError } from "@quorate/member/testing";
import { defined } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { promised, type ServiceTable, type UnaryHandler } from "@quorate/rpc";
import type { ServerConfig } from "@quorate/server";
import { serviceTable, withStatuses } from "@quorate/services";
import { directoryExpiry } from "@quorate/v2";
import { watchStore } from "./apply-watch.ts";
import type { SimOptions } from "./base/options.ts";
import { Process, ProcessClock, type Scheduler } from "./base/scheduler.ts";
import type { CorruptionCheck } from "./check/corruption.ts";
import { watchPatience } from "./check/first-election.ts";
import type { HashCheck } from "./check/hashes.ts";
import type { RaftCheck } from "./check/raft.ts";
import { type Safety, Violation, violate } from "./check/safety.ts";
import { Crash, type CrashPoint, CrashPoints } from "./crash-points.ts";
import { ProcessDisk, ProcessKeyspaces } from "./disk.ts";
import type { DiskFaults } from "./disk-faults.ts";
import { isEtcd } from "./etcd/etcd-member.ts";
import { type LogEnd, logEndOf, SimLog } from "./log-reader.ts";
import { Machine } from "./machine.ts";
import type { Network } from "./network.ts";
import { answersOf } from "./peer-ports.ts";
import { plantMisbehavior, twistOf } from "./planted/planted.ts";
import type { Story } from "./report/story.ts";
import { applyLimitsOf, boundsOf, memoryLimitsOf, sliceLimitsOf } from "./step-limits.ts";
import { simSecrets } from "./users/secrets.ts";

/** Operations of a disk that may fail by themselves. */
const DISK_OPERATIONS = [
  "open",
  "read",
  "write",
  "sync",
  "resize",
  "rename",
  "remove",
  "list",
  "makeDir",
  "syncDir",
] as const;

/** A handler for callers that wait with promises: those of a run await what they get. */
const withPromises = (handler: UnaryHandler): UnaryHandler =>
  withStatuses((request, context) => promised(handler(request, context)));

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
  readonly machine: Machine;
  /** Whether its member is one of etcd's. */
  readonly isEtcd: boolean;
  process: Process | undefined;
  clock: ProcessClock | undefined;
  /** Set while the member takes requests. */
  member: Member | undefined;
  services: ServiceTable | undefined;
  /** The machine of its process, while that lives. */
  raft: Raft | undefined;
  readonly crashPoints = new CrashPoints();
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
  /** Its processor is slow. */
  slowTurns = false;
  starts = 0;
  /** Starts on a disk that had lied, and of which the log showed nothing. */
  liesUnnoticed = 0;
  /** Since when its member has applied the alarm CORRUPT that names it, in this process. */
  namedSinceMs: number | undefined;

  constructor(name: string, deps: NodeDeps) {
    this.name = name;
    this.#deps = deps;
    this.#config = deps.config;
    this.isEtcd = isEtcd(deps.options, name);
    this.hasNotJoined = !deps.config.isNewCluster;
    this.#random = deps.random.fork(name);
    const { options, scheduler, network, story, config } = deps;
    this.machine = new Machine(options, {
      scheduler,
      links: network.links,
      random: this.#random,
      walDir: config.walDir,
      storeDir: config.storeDir,
      report: (text) => story.record(name, text),
      process: () => this.process,
    });
  }

  /** Its member's id, 0n before it has run. */
  get memberId(): bigint {
    return this.#memberId;
  }

  /** Alterations of its store that are still there. */
  get alterations(): readonly { readonly key: string; readonly revision: number }[] {
    return this.machine.sabotage.standing;
  }

  /** What its store holds differs, or may differ, from what it should. */
  get isAltered(): boolean {
    return this.machine.sabotage.standing.length > 0;
  }

  /** Its last start ended because it differs from others, or they from it. */
  foundDifference = false;

  /** How often its store was made to differ. */
  timesAltered = 0;

  /** Makes its store differ from the others'; false where there is nothing to alter. */
  alter(): boolean {
    if (this.#memberId === 0n || !this.machine.sabotage.alter()) return false;
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
    return defined(this.#config.initialCluster.get(this.name), "the initial cluster").map(
      ({ text }) => text,
    );
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
    return this.damaged ? undefined : logEndOf(this.machine.disk, this.#config.walDir);
  }

  /** It runs as what it is to be, or never will. */
  get isSettled(): boolean {
    return this.refused || this.member !== undefined;
  }

  /** Calls `lay` to lay out the disk before the first start; then the machine loses power. */
  async prepareDisk(
    lay: (
      machine: { disk: MemoryDisk; keyspaces: MemoryKeyspaceOpener; clock: Clock },
      config: ServerConfig,
    ) => Promise<void>,
  ) {
    await lay(
      { disk: this.machine.disk, keyspaces: this.machine.keyspaces, clock: this.machine.clock },
      this.#config,
    );
    this.machine.disk.crash(this.#random);
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
    return this.machine.faults.isDamaged || this.refused;
  }

  /**
   * Starts a process on what the disk holds. @param arm called when the process is there and has
   * not begun yet
   */
  start(arm: () => void = () => {}): void {
    if (this.gone) return;
    const { scheduler, options, story, network } = this.#deps;
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
    story.record(this.name, `starts, clock rate ${rate.toFixed(4)}`);
    const random = this.#random.fork(`start ${this.starts++}`);
    const twist = twistOf(options.bug, random.fork("twist"));
    let started: Member | undefined;
    this.machine.faults.begin();
    arm();
    this.machine.faults.receiving = () => {
      if (process.alive) this.#pass("receiving");
    };
    Member.start(this.#config, {
      clock,
      random,
      disk: new ProcessDisk(this.machine.disk, process, twist),
      keyspaces: new ProcessKeyspaces(this.machine.keyspaces, process, twist),
      logger: this.#logger(),
      secrets: options.users
        ? simSecrets(options, { random: random.fork("secrets"), scheduler, process })
        : undefined,
      walSegmentBytes: options.segmentBytes,
      followsEtcd: options.etcdMembers > 0 && this.isFounder,
      beforeRevoke: directoryExpiry,
      applyLimits: applyLimitsOf(options),
      sliceLimits: sliceLimitsOf(options),
      bounds: boundsOf(options),
      ...memoryLimitsOf(options),
      faults: (point) => {
        if (point === "after-snapshot-install" && started !== undefined) this.#watch(started);
        if (process.alive) this.#pass(point);
      },
      onRaft: (raft) => {
        this.#trustDisk(raft);
        this.raft = raft;
        watchRaft(this.name, raft, process, {
          ...this.#deps,
          look: (check) => this.#look(check),
        });
        process.onEnd(() => {
          if (this.raft === raft) this.raft = undefined;
        });
      },
      callPeer: (url, path, body, timeoutMs) =>
        network.ports.call(this.name, process, { url, path, body, timeoutMs }),
      makeTransport: (request) => network.make(this, process, request, this.urls),
      onEnd: (error) => {
        if (process.alive) this.#ended(error);
      },
    }).then(
      (member) => {
        if (!process.alive) return;
        this.#look(() => {
          started = member;
          if (this.machine.faults.hasDamagedRecord)
            violate("DISK-2", `${this.name} runs on a store that has lost a record`);
          this.hasRun = true;
          this.foundDifference = false;
          this.hasNotJoined = false;
          this.#memberId = member.id;
          this.member = member;
          const table = serviceTable(member, withPromises);
          this.services = this.#atTheDoor(table, { clock, process, random });
          plantMisbehavior(options.bug, member);
          this.#listen(member, process);
          this.#watch(member);
          story.record(
            this.name,
            `runs: term ${member.term} applied ${member.appliedIndex} revision ${member.store.mvcc.currentRevision}`,
          );
        });
      },
      (error: unknown) => {
        if (process.alive) this.#ended(error);
      },
    );
  }

  /** The services as clients reach them: through a front-end, where the run has them. */
  #atTheDoor(
    services: ServiceTable,
    own: { readonly clock: Clock; readonly process: Process; readonly random: Random },
  ): ServiceTable {
    const { scheduler, options, fail } = this.#deps;
    if (options.frontMs === 0) return services;
    const random = own.random.fork("front");
    const twin = new FrontTwin({
      services,
      http: (exchange) => {
        exchange.abort();
        return {};
      },
      clock: own.clock,
      logger: silentLogger,
      later: (task) => void scheduler.after(random.unit() * options.frontMs, task, own.process),
      broken: (error) => fail(error),
      fields: ["x-forwarded-for", "grpcgateway-accept"],
      // The smallest, which is full now and then.
      ringBytes: 128 * 1024,
    });
    return twin.services;
  }

  /** The log of a process that starts. */
  #logger(): Logger {
    const { options, scheduler, fail } = this.#deps;
    if (!options.logStalls) return silentLogger;
    const random = this.#random.fork(`log reader ${this.starts}`);
    return new SimLog(random, () => scheduler.nowMs, fail).logger;
  }

  /**
   * Where the disk has lied about syncs, and the log that is left does not show it, no program can
   * know. The operator does (docs/evidence/correctness.md): the machine is given up before it takes
   * part.
   */
  #trustDisk(raft: Raft): void {
    const { faults } = this.machine;
    const { safety, story } = this.#deps;
    if (faults.hasLied && safety.acknowledged.isLess(raft)) {
      story.record(this.name, "has lost what its disk said that it had synced");
      this.liesUnnoticed++;
      this.condemn();
      throw new Crash("the disk has lied");
    }
    faults.lied.wasRead();
  }

  /** The process comes by a point where it may be made to crash. */
  #pass(point: CrashPoint): void {
    const plan = this.crashPoints.pass(point);
    if (plan === undefined) return;
    this.#deps.story.record(this.name, `crashes at ${point}, ${plan.operations} operations on`);
    if (plan.operations > 0) {
      this.crashAtDisk(plan.operations);
      return;
    }
    this.crash("power");
    throw new Crash(point);
  }

  /** Answers at the member's peer URLs. */
  #listen(member: Member, process: Process): void {
    const port = { name: this.name, process, answer: answersOf(member, this.isEtcd) };
    for (const url of this.urls) this.#deps.network.ports.listen(url, port);
  }

  /** Sees to it that every entry applied to the member's present store is looked at. */
  #watch(member: Member): void {
    const { safety, hashCheck, story, scheduler, options } = this.#deps;
    watchStore(this, member, {
      safety,
      hashCheck,
      story,
      maxLearners: options.maxLearners,
      look: (check) => this.#look(check),
      fail: (error) => this.#deps.fail(error),
      named: (isNamed) => {
        this.namedSinceMs = isNamed ? (this.namedSinceMs ?? scheduler.nowMs) : undefined;
      },
    });
  }

  /** What is wrong is reported to the simulator; a member would only end by it. */
  #look(look: () => void): void {
    try {
      look();
    } catch (error) {
      this.#deps.fail(error);
    }
  }

  #ended(error: unknown): void {
    const { story } = this.#deps;
    story.record(this.name, `ended: ${error instanceof Error ? error.message : String(error)}`);
    this.process?.end();
    this.member = undefined;
    this.services = undefined;
    this.machine.disk.kill(this.#random);
    const { safety, corruptionCheck } = this.#deps;
    const ending = endingOf({
      error,
      isRemoved: safety.isRemoved(this.#memberId),
      joins: !this.#config.isNewCluster,
      isAnyAltered: corruptionCheck.isAnyAltered,
      faults: this.machine.faults,
    });
    if (ending === "removed") this.gone = true;
    else if (ending === "not-joined") this.hasNotJoined = true;
    else if (ending === "difference") this.foundDifference = true;
    else if (ending === "damage") this.refused = true;
    else if (ending === "unexplained") {
      const text = error instanceof Error ? (error.stack ?? error.message) : "no error";
      this.#deps.fail(
        new Violation(
          `SIM-9: ${this.name} ended, and nothing was done to it that would explain it: ${text}`,
        ),
      );
    }
  }

  /** The machine loses power, or the process alone is killed. */
  crash(kind: "power" | "kill"): void {
    if (this.down) return;
    this.#deps.story.record(this.name, kind === "power" ? "loses power" : "is killed");
    defined(this.process, "the process").end();
    this.member = undefined;
    this.services = undefined;
    this.machine.crash(kind, this.#random);
  }

  /** Ends in order; gives up and kills after a while. */
  stop(): void {
    const { member, process } = this;
    if (member === undefined || process === undefined) return;
    this.#deps.story.record(this.name, "stops in order");
    this.member = undefined;
    this.services = undefined;
    const end = () => {
      if (process.alive) this.crash("kill");
    };
    member
      .handOver()
      .then(() => {
        this.#deps.safety.keptLog.forget(this.name);
        return member.stop();
      })
      .then(end, end);
    this.#deps.scheduler.after(20_000, end);
  }

  /** The disk fails: full for a while, in one operation, or in a read at the next start. */
  failDisk(kind: "full" | "once" | "read"): void {
    if (this.down !== (kind === "read") || this.refused) return;
    const count = this.#random.below(20);
    if (kind === "full")
      this.machine.faults.fail("NoSpace", ["write", "resize"], count, Number.POSITIVE_INFINITY);
    else if (kind === "once") this.machine.faults.fail("Io", DISK_OPERATIONS, count, 1);
    else this.start(() => this.machine.faults.fail("Io", ["open", "read", "list"], count, 1));
  }

  /**
   * The machine loses power in the middle of an operation of its disk, after `count` others; if it
   * is down it is started for that.
   */
  crashAtDisk(count: number): void {
    if (this.refused) return;
    const arm = () =>
      this.machine.faults.crash(count, (operation) => {
        this.#deps.story.record(this.name, `crashes in a ${operation}`);
        this.crash("power");
        throw new Crash(operation);
      });
    if (this.down) this.start(arm);
    else arm();
  }

  failBackend(): void {
    if (!this.down) this.machine.faults.failStore("Io");
  }

  /**
   * What was synced goes bad: a bit or a sector of the log, or the store as a whole. Only while the
   * process is down.
   */
  damage(): boolean {
    return this.machine.faults.damage();
  }

  /** The next sync of the log fails. */
  failSync(): void {
    this.machine.faults.failSync();
  }

  /**
   * A bit of the log flips: of what stands behind its last durable mark, or anywhere; the process
   * may run. False if there is none yet.
   */
  damageLog(where: "tail" | "anywhere"): boolean {
    return this.machine.faults.flipBit(where);
  }

  /**
   * The store loses a record, or its position is lowered, while the process is down. False if there
   * is none yet.
   */
  damageRecord(): boolean {
    return this.machine.faults.damageRecord();
  }
}

interface RaftWatchDeps {
  readonly options: SimOptions;
  readonly safety: Safety;
  readonly raftCheck: RaftCheck;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
  /** Runs a check whose violation is reported to the simulator. */
  look(check: () => void): void;
}

/** Watches `raft` of the member `name` until its process ends. */
function watchRaft(
  name: string,
  raft: Raft,
  process: Process,
  { options, safety, raftCheck, fail, look }: RaftWatchDeps,
): void {
  raftCheck.watch(name, raft, fail);
  if (options.electionAdvance) {
    const electionTicks = Math.floor(options.electionMs / options.heartbeatMs);
    watchPatience(name, raft, electionTicks, fail);
  }
  safety.promotions.watch(name, raft, fail);
  // Where the log may hold little, that bound goes first; and entries of etcd's v2 store, which its
  // newer releases do not start on, go at once, whoever wants what is before them.
  if (!options.smallBounds && options.etcdMembers === 0)
    safety.keptLog.watch(name, raft, options.drift, fail);
  look(() => safety.acknowledged.started(name, raft));
  process.onEnd(() => {
    raftCheck.forget(name);
    safety.acknowledged.ended(raft);
    safety.promotions.forget(raft);
    safety.keptLog.forget(name);
  });
}

/** What is known of a member that ended. */
interface Ended {
  /** What it ended with; undefined for an end in order. */
  readonly error: unknown;
  /** Its removal from the cluster was applied somewhere. */
  readonly isRemoved: boolean;
  /** It is one that joins a cluster which exists. */
  readonly joins: boolean;
  /** Some member's store was made to differ. */
  readonly isAnyAltered: boolean;
  readonly faults: DiskFaults;
}

/**
 * removed: it is no member any more. not-joined: it could not reach a member, or the membership has
 * changed since it was configured to join. difference: it differs from others, or others from it,
 * and must compare itself before it takes part. damage: its disk went bad, and so it refuses.
 * fault: an operation that was made to fail. unexplained: a violation of SIM-9.
 */
type Ending = "removed" | "not-joined" | "difference" | "damage" | "fault" | "unexplained";

/**
 * Why a member's process ended by itself, and whether anything that was done to it explains that.
 *
 * Returns which it is.
 */
function endingOf({ error, isRemoved, joins, isAnyAltered, faults }: Ended): Ending {
  // An end without an error is that of a member which was removed, and so is a start that is
  // refused for it.
  if (isRemoved && (error === undefined || error instanceof BootstrapError)) return "removed";
  const isJoinError = joins && error instanceof Error && error.name === "JoinError";
  if (isJoinError && !error.message.includes("started before")) return "not-joined";
  if (
    isAnyAltered &&
    error instanceof Error &&
    error.message.endsWith("found data inconsistency with peers")
  )
    return "difference";
  // The store is ahead of a log whose syncs lied.
  const isBehind = error instanceof BootstrapError && error.message.includes("has lost entries");
  if (isBehind && faults.hasLied) return "damage";
  return faults.reasonOf(error) ?? "unexplained";
}
