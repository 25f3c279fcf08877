/**
 * A cluster in a box, driven by one seed. First everything goes wrong that may, and safety is
 * checked after each step; then everything heals, and progress is demanded.
 */
import { type Random, SeededRandom } from "@quorate/host";
import { defined, fromLatin1, raftpb } from "@quorate/proto";
import { bootstrapEntries, messageName } from "@quorate/raft";
import { violate } from "../base/violation.ts";
import { SimMember, type Surroundings } from "./member.ts";
import { SimNetwork } from "./network.ts";
import type { ScheduleOptions } from "./options.ts";
import { RaftSafety } from "./safety.ts";

/** What happened in a run: a run in which nothing happens shows nothing. */
export interface Counts {
  elections: number;
  commits: number;
  crashes: number;
  snapshots: number;
  confChanges: number;
  reads: number;
}

/** Most members over a run, removed ones included. */
const MAX_MEMBERS = 8;

const { ConfChangeAddLearnerNode, ConfChangeAddNode, ConfChangeRemoveNode } = raftpb.ConfChangeType;

export class RaftWorld implements Surroundings {
  readonly options: ScheduleOptions;
  readonly safety = new RaftSafety();
  readonly #counts: Counts = {
    elections: 0,
    commits: 0,
    crashes: 0,
    snapshots: 0,
    confChanges: 0,
    reads: 0,
  };
  readonly #random: Random;
  readonly #network: SimNetwork;
  readonly #members: SimMember[] = [];
  readonly #lostSnapshots: { from: bigint; to: bigint; ok: boolean }[] = [];
  #payloads = 0;
  #reads = 0;
  #tickTurn = 0;
  /** The last steps, if asked for. */
  readonly #trace: string[] | undefined;

  constructor(options: ScheduleOptions, trace: string[] | undefined = undefined) {
    this.options = options;
    this.#trace = trace;
    this.#random = new SeededRandom(BigInt(options.seed)).fork("schedule");
    this.#network = new SimNetwork(options, this.#random.fork("network"));
    this.#network.onSnapshotLost = (message) =>
      this.#lostSnapshots.push({ from: message.from, to: message.to, ok: false });
    const ids = Array.from({ length: options.members }, (_, i) => BigInt(i + 1));
    const entries = bootstrapEntries(ids.map((id) => ({ id, context: fromLatin1(`m${id}`) })));
    for (const id of ids) {
      const member = this.#addMember(id);
      member.disk.write(0, [
        ...entries.map((entry) => ({ kind: "entry" as const, entry })),
        { kind: "hard", hardState: { term: 1, vote: 0n, commit: entries.length } },
      ]);
      member.disk.sync(0);
      member.start();
    }
  }

  get counts(): Counts {
    return { ...this.#counts, elections: this.safety.elections };
  }

  #note(text: () => string): void {
    if (this.#trace === undefined) return;
    this.#trace.push(text());
    if (this.#trace.length > 400) this.#trace.shift();
  }

  #addMember(id: bigint): SimMember {
    const random = this.#random.fork(`member ${id}`);
    const { options } = this;
    const member = new SimMember(
      {
        id,
        electionTicks: options.electionTicks,
        heartbeatTicks: options.heartbeatTicks,
        randomBelow: (bound) => random.below(bound),
        preVote: options.preVote,
        checkQuorum: options.checkQuorum,
        readOnly: options.readOnly,
        maxMessageBytes: options.maxMessageBytes,
        maxInflightMessages: options.maxInflightMessages,
        maxInflightBytes: options.maxInflightBytes,
        maxUncommittedBytes: options.maxUncommittedBytes,
        maxCommittedBytesPerReady: options.maxCommittedBytesPerReady,
        maxPendingReads: options.maxPendingReads,
        logger:
          this.#trace === undefined
            ? undefined
            : (level, message, fields) => {
                const shown = Object.entries(fields).map(
                  ([name, value]) => `${name}=${String(value)}`,
                );
                this.#note(() => `    ${level} ${message} ${shown.join(" ")}`);
              },
      },
      this,
    );
    this.#members.push(member);
    return member;
  }

  send(from: SimMember, messages: readonly raftpb.Message[]): void {
    for (const message of messages) {
      this.safety.sent(message);
      if (message.type !== raftpb.MessageType.MsgSnap) {
        this.#network.send(message);
        continue;
      }
      this.#counts.snapshots++;
      this.#network.send({ ...message, snapshot: from.currentSnapshot() });
    }
  }

  #member(id: bigint): SimMember | undefined {
    return this.#members.find((member) => member.id === id);
  }

  #check(member: SimMember): void {
    if (member.running) this.safety.check(member.raft);
  }

  #running(): SimMember[] {
    return this.#members.filter((member) => member.running);
  }

  /**
   * The leader, if there is one, about half of the time: requests to other members mostly fail
   * while things go wrong.
   */
  #pickTarget(): SimMember | undefined {
    const running = this.#running();
    const leaders = running.filter((member) => member.raft.role === "leader");
    return this.#pick(leaders.length > 0 && this.#random.below(2) === 0 ? leaders : running);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items.length === 0 ? undefined : items[this.#random.below(items.length)];
  }

  /** The faulty phase. */
  runFaults(): void {
    for (const member of this.#members) this.#check(member);
    const storm = this.#kinds(false);
    const calm = this.#kinds(true);
    let kinds = storm;
    for (let step = 0; step < this.options.steps; step++) {
      if (step % 100 === 0) kinds = this.#random.below(3) === 0 ? calm : storm;
      let at = this.#random.below(kinds.total);
      for (const kind of kinds.list) {
        at -= kind.weight;
        if (at >= 0) continue;
        kind.run();
        break;
      }
    }
  }

  /**
   * The possible next events, with their weights. In calm times no member crashes, and what is sent
   * and written gets done faster.
   */
  #kinds(calm: boolean): {
    readonly total: number;
    readonly list: readonly { readonly weight: number; readonly run: () => void }[];
  } {
    const { options } = this;
    const faults = calm ? 0 : 1;
    const speed = calm ? 300 : options.diskSpeed;
    const list = [
      { weight: calm ? 600 : 300, run: () => this.#deliver() },
      {
        weight: 300,
        run: () =>
          this.#takeReady(this.#pick(this.#running().filter((member) => member.raft.hasReady()))),
      },
      {
        weight: speed,
        run: () => this.#sync(this.#pick(this.#running().filter((member) => member.hasWrites))),
      },
      {
        weight: speed,
        run: () => this.#apply(this.#pick(this.#running().filter((member) => member.hasApplies))),
      },
      { weight: options.tickSpeed, run: () => this.#tick() },
      { weight: 10, run: () => this.#network.wake() },
      { weight: 60, run: () => this.#propose() },
      { weight: 25, run: () => this.#read() },
      { weight: 20, run: () => this.#reportSnapshot() },
      { weight: 20, run: () => this.#pick(this.#running())?.saveBackend() },
      {
        weight: options.compactions,
        run: () => this.#pick(this.#running())?.compact(this.#random.below(8)),
      },
      { weight: faults * options.crashes, run: () => this.#crash() },
      { weight: options.restarts, run: () => this.#restart() },
      { weight: options.partitions, run: () => this.#partition(calm) },
      { weight: options.confChanges, run: () => this.#changeConf() },
      { weight: options.transfers, run: () => this.#transfer() },
      { weight: faults * options.campaigns, run: () => this.#campaign() },
      { weight: faults * 2, run: () => this.#reportUnreachable() },
      { weight: faults, run: () => this.#pick(this.#running())?.raft.forgetLeader() },
    ];
    return { total: list.reduce((sum, kind) => sum + kind.weight, 0), list };
  }

  #deliver(): void {
    for (let count = 1 + this.#random.below(3); count > 0; count--) {
      const message = this.#network.next();
      if (message !== undefined) this.#arrive(message);
    }
  }

  #arrive(message: raftpb.Message): void {
    const member = this.#member(message.to);
    const { MsgSnap } = raftpb.MessageType;
    if (member === undefined || !member.running) {
      if (message.type === MsgSnap)
        this.#lostSnapshots.push({ from: message.from, to: message.to, ok: false });
      return;
    }
    this.#note(() => `${message.from}->${message.to} ${describe(message)}`);
    const refused = member.raft.step(message);
    if (refused !== undefined)
      throw new Error(`${message.to} refuses a message of ${message.from}: ${refused}`);
    if (message.type === MsgSnap)
      this.#lostSnapshots.push({ from: message.from, to: message.to, ok: true });
    this.#check(member);
  }

  #takeReady(member: SimMember | undefined): void {
    if (member === undefined || !member.raft.hasReady()) return;
    this.#note(() => `${member.id} ready`);
    member.takeReady();
    this.#check(member);
  }

  #sync(member: SimMember | undefined): void {
    if (member === undefined || !member.hasWrites) return;
    this.#note(() => `${member.id} sync`);
    if (this.#random.below(2) === 0 || !member.skipSync()) {
      member.sync(1 + this.#random.below(member.pendingWrites), this.#random.below(2) === 0);
    }
    this.#check(member);
  }

  #apply(member: SimMember | undefined): void {
    if (member === undefined || !member.hasApplies) return;
    this.#note(() => `${member.id} apply`);
    const before = member.state.applied;
    member.apply(1 + this.#random.below(5));
    this.#counts.commits += member.state.applied - before;
    this.#check(member);
  }

  /**
   * Mostly one member ticks once. Now and then a time passes in which nothing else happens, so that
   * elections are not rare. Leases need clocks that tick alike: then members tick in turn.
   */
  #tick(): void {
    const count =
      this.#random.below(5) === 0 ? 1 + this.#random.below(this.options.electionTicks) : 1;
    if (this.options.readOnly !== "lease") {
      const member = this.#pick(this.#running());
      for (let i = 0; i < count && member !== undefined; i++) this.#tickOne(member);
      return;
    }
    for (let i = 0; i < count * (count > 1 ? this.#members.length : 1); i++) {
      const member = this.#members[this.#tickTurn++ % this.#members.length];
      if (member.running) this.#tickOne(member);
    }
  }

  #tickOne(member: SimMember): void {
    this.#note(() => `${member.id} tick`);
    member.raft.tick();
    this.#check(member);
  }

  #propose(): void {
    const member = this.#pickTarget();
    if (member === undefined) return;
    const count = 1 + this.#random.below(4);
    const payloads = Array.from({ length: count }, () =>
      fromLatin1(`p${this.#payloads++}`.padEnd(this.#random.below(100), ".")),
    );
    const result = member.raft.propose(payloads);
    this.#note(() => `${member.id} propose ${count}: ${result}`);
    this.#check(member);
  }

  #read(member = this.#pickTarget()): string | undefined {
    if (member === undefined) return undefined;
    const context = `r${this.#reads++} of ${member.id}`;
    this.safety.asked(context);
    const result = member.raft.readIndex(fromLatin1(context));
    this.#note(() => `${member.id} read ${context}: ${result}, commit ${this.safety.maxCommitted}`);
    if (result === "accepted") this.#counts.reads++;
    this.#check(member);
    return context;
  }

  #reportSnapshot(): void {
    const report = this.#lostSnapshots.shift();
    if (report === undefined) return;
    const sender = this.#member(report.from);
    if (sender === undefined || !sender.running) return;
    sender.raft.reportSnapshot(report.to, report.ok);
    this.#check(sender);
  }

  #crash(): void {
    const candidates = this.#running().filter((member) => member.raft.role === "candidate");
    const member =
      this.#random.below(2) === 0 && candidates.length > 0
        ? this.#pick(candidates)
        : this.#pickTarget();
    if (member === undefined) return;
    const survivors = this.#random.below(member.disk.unsynced + 1);
    this.#note(() => `${member.id} crash, ${survivors} of ${member.disk.unsynced} records survive`);
    member.crash(survivors);
    this.#counts.crashes++;
  }

  #restart(): void {
    const member = this.#pick(this.#members.filter((one) => !one.running));
    if (member === undefined) return;
    this.#note(() => `${member.id} restart`);
    member.start();
    this.#check(member);
  }

  /** Isolates the leader, or a random few members, or none. */
  #partition(calm: boolean): void {
    const ids = this.#members.map((member) => member.id);
    const kind = calm ? 0 : this.#random.below(3);
    let apart: bigint[] = [];
    if (kind === 1) apart = ids.filter(() => this.#random.below(2) === 0);
    else if (kind === 2)
      apart = this.#running()
        .filter((member) => member.raft.role === "leader")
        .map((member) => member.id);
    this.#note(() => `partition: ${apart.join(" ")}`);
    this.#network.partition(apart);
  }

  #changeConf(): void {
    const member = this.#pickTarget();
    if (member === undefined) return;
    const known = this.#members.map((one) => one.id);
    const transition = defined(this.#pick([0, 0, 0, 1, 2]), "the value");
    const count = transition === 0 && this.#random.below(2) === 0 ? 1 : this.#random.below(4);
    const changes: raftpb.ConfChangeSingle[] = [];
    for (let i = 0; i < count; i++) {
      const fresh = this.#random.below(3) === 0 && this.#members.length < MAX_MEMBERS;
      const nodeId = fresh ? BigInt(this.#members.length + 1) : this.#pick(known)!;
      if (fresh) this.#addMember(nodeId).start();
      changes.push({
        type: this.#pick([
          ConfChangeAddNode,
          ConfChangeAddNode,
          ConfChangeAddLearnerNode,
          ConfChangeRemoveNode,
        ])!,
        nodeId,
      });
    }
    const result = member.raft.proposeConfChange({ transition, changes, context: fromLatin1("c") });
    this.#note(
      () =>
        `${member.id} conf change ${transition} ${changes.map((c) => `${c.type}:${c.nodeId}`).join(" ")}: ${result}`,
    );
    if (result === "accepted") this.#counts.confChanges++;
    this.#check(member);
  }

  #transfer(): void {
    const member = this.#pickTarget();
    const to = this.#pick(this.#members);
    if (member === undefined || to === undefined) return;
    const result = member.raft.transferLeadership(to.id);
    this.#note(() => `${member.id} transfer to ${to.id}: ${result}`);
    this.#check(member);
  }

  #campaign(): void {
    const member = this.#pick(this.#running());
    if (member === undefined) return;
    this.#note(() => `${member.id} campaign`);
    member.raft.campaign();
    this.#check(member);
  }

  #reportUnreachable(): void {
    const member = this.#pick(this.#running());
    const to = this.#pick(this.#members);
    if (member !== undefined && to !== undefined) member.raft.reportUnreachable(to.id);
  }

  /**
   * The healing phase: the members of the latest configuration run, nothing is lost, and work has
   * to get done.
   */
  runHealed(): void {
    this.#note(() => "heals");
    this.#network.heal();
    for (const member of this.#members) if (!member.running) member.start();
    const rounds = 40 * this.options.electionTicks;
    const proposals = new Set<string>();
    const reads = new Map<string, SimMember>();
    let proposedAt = -1;
    for (let round = 0; round < rounds; round++) {
      this.#stopRemoved();
      for (const member of this.#running()) this.#tickOne(member);
      this.#settle();
      const leaders = this.#running().filter((member) => member.raft.role === "leader");
      const leader = leaders.length === 1 ? leaders[0] : undefined;
      if (leader === undefined || round - proposedAt < 5) continue;
      if (proposedAt >= 0 && this.#isDone(proposals, reads)) return;
      proposedAt = round;
      const conf = leader.raft.confState;
      if (conf.votersOutgoing.length > 0 && !conf.autoLeave) {
        leader.raft.proposeConfChange({ transition: 0, changes: [], context: fromLatin1("") });
      }
      proposals.clear();
      reads.clear();
      for (const member of this.#running()) {
        const payload = `healed ${round} ${member.id}`;
        if (member.raft.propose([fromLatin1(payload)]) === "accepted") proposals.add(payload);
        const context = this.#read(member);
        if (context !== undefined) reads.set(context, member);
      }
    }
    violate("PROGRESS", `no progress in ${rounds} rounds after healing\n${this.describe()}`);
  }

  #isDone(proposals: ReadonlySet<string>, reads: ReadonlyMap<string, SimMember>): boolean {
    const running = this.#running();
    if (
      proposals.size === 0 ||
      running.some((member) => member.state.applied < this.safety.maxCommitted)
    )
      return false;
    if (running.some((member) => member.raft.confState.votersOutgoing.length > 0)) return false;
    // A bound may have refused some reads and proposals, but not all of them.
    return [...reads].some(([context, member]) => member.confirmed.has(context));
  }

  /**
   * An administrator runs the members of the latest configuration, and stops the others as soon as
   * all of those have applied it.
   */
  #stopRemoved(): void {
    let latest = this.#members[0];
    for (const member of this.#members)
      if (member.state.applied > latest.state.applied) latest = member;
    const conf = latest.state.confState;
    if (conf.voters.length === 0) return;
    const ids = new Set([...conf.voters, ...conf.votersOutgoing, ...conf.learners]);
    const listed = this.#members.filter((member) => ids.has(member.id));
    for (const member of listed) if (!member.running) member.start();
    if (listed.some((member) => member.state.applied < latest.state.applied)) return;
    for (const member of this.#running())
      if (!ids.has(member.id)) member.crash(Number.MAX_SAFE_INTEGER);
  }

  /** Lets everyone work until nothing is left to do. */
  #settle(): void {
    for (let turn = 0; turn < 20_000; turn++) {
      let busy = false;
      while (this.#lostSnapshots.length > 0) this.#reportSnapshot();
      for (const member of this.#running()) {
        if (member.raft.hasReady()) {
          this.#takeReady(member);
          busy = true;
        }
        if (member.hasWrites) {
          member.sync(member.pendingWrites, false);
          this.#check(member);
          busy = true;
        }
        while (member.hasApplies) {
          this.#apply(member);
          busy = true;
        }
      }
      while (this.#network.size > 0) {
        this.#deliver();
        busy = true;
      }
      if (!busy) return;
    }
    violate("PROGRESS", `never comes to rest\n${this.describe()}`);
  }

  /** Everyone's state, for a failure's report. */
  describe(): string {
    return this.#members
      .map((member) => (member.running ? statusLine(member) : `${member.id} is down`))
      .join("\n");
  }
}

function statusLine(member: SimMember): string {
  const status = member.raft.status();
  const progress = status.progress
    .map((one) => `${one.id}:${one.state}${one.paused ? "!" : ""} ${one.match}/${one.next}`)
    .join(", ");
  const { voters, votersOutgoing, learners } = status.confState;
  return (
    `${member.id} ${status.role} term ${status.term} leader ${status.leader} log ${status.firstIndex}..${status.lastIndex} ` +
    `stable ${status.stableIndex} commit ${status.commit} applied ${status.applied} ` +
    `voters ${voters.join(" ")} outgoing ${votersOutgoing.join(" ")} learners ${learners.join(" ")} ${progress}`
  );
}

/** A message in a line. */
export function describe(message: raftpb.Message): string {
  const name = messageName(message.type);
  const parts = [`${name} term ${message.term}`];
  if (message.logTerm > 0 || message.index > 0)
    parts.push(`at ${message.index}/${message.logTerm}`);
  if (message.commit > 0) parts.push(`commit ${message.commit}`);
  if (message.entries.length > 0)
    parts.push(
      `entries ${message.entries.map((entry) => `${entry.index}/${entry.term}`).join(" ")}`,
    );
  if (message.reject) parts.push(`reject, hint ${message.rejectHint}`);
  if (message.snapshot !== undefined)
    parts.push(`snapshot ${message.snapshot.metadata.index}/${message.snapshot.metadata.term}`);
  return parts.join(", ");
}
