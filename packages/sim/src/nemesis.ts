/** What goes wrong, when, and for how long. */
import type { Random } from "@quorate/host";
import { FAULT_POINTS } from "@quorate/member/testing";
import { defined } from "@quorate/proto";
import { FAULT_KINDS, type FaultKind } from "./base/fault-kinds.ts";
import type { SimOptions } from "./base/options.ts";
import type { Scheduler } from "./base/scheduler.ts";
import { INSTALL_POINTS } from "./crash-points.ts";
import type { LeaseClients } from "./lease-clients.ts";
import type { Link, Links } from "./links.ts";
import type { Node } from "./node.ts";
import type { Story } from "./report/story.ts";

export class Nemesis {
  readonly #options: SimOptions;
  readonly #nodes: readonly Node[];
  readonly #links: Links;
  readonly #scheduler: Scheduler;
  readonly #story: Story;
  readonly #mayDamage: () => boolean;
  /** Entries of the log that noted what is left of leases. */
  readonly #checkpoints: () => number;
  readonly #leaseClients: Pick<LeaseClients, "abandon">;
  readonly #random: Random;
  #active = true;
  /** How often each fault struck. */
  readonly counts = new Map<FaultKind, number>();

  constructor(
    options: SimOptions,
    deps: {
      nodes: readonly Node[];
      links: Links;
      scheduler: Scheduler;
      story: Story;
      random: Random;
      mayDamage: () => boolean;
      checkpoints: () => number;
      leaseClients: Pick<LeaseClients, "abandon">;
    },
  ) {
    this.#options = options;
    this.#nodes = deps.nodes;
    this.#links = deps.links;
    this.#scheduler = deps.scheduler;
    this.#story = deps.story;
    this.#mayDamage = deps.mayDamage;
    this.#checkpoints = deps.checkpoints;
    this.#leaseClients = deps.leaseClients;
    this.#random = deps.random;
  }

  /** Begins to let things go wrong. */
  start(): void {
    for (const node of this.#nodes) if (node.down) node.start();
    this.#next();
    // Who is down for whatever reason comes up again after a while.
    this.#watchDown();
    if (this.#options.theme === "leases") this.#watchCheckpoints(0);
  }

  /**
   * From now on nothing new goes wrong, and what did is put right; members that are down are
   * started.
   */
  stop(): void {
    this.#active = false;
    this.#links.heal();
    for (const node of this.#nodes) {
      node.machine.heal();
      node.crashPoints.plan = undefined;
      node.slowTurns = false;
      if (node.process?.paused === true) this.#scheduler.resume(node.process);
    }
    this.#watchDown();
  }

  #watchDown(): void {
    for (const node of this.#nodes) {
      if (!node.down || node.refused || (this.#active && this.#random.below(2) === 0)) continue;
      node.machine.heal();
      node.start();
    }
    const waitMs = this.#active
      ? 50 + this.#random.unit() * this.#random.unit() * this.#options.maxDownMs
      : 500;
    this.#scheduler.after(waitMs, () => this.#watchDown());
  }

  #next(): void {
    this.#scheduler.after(-Math.log(1 - this.#random.unit()) * this.#options.faultEveryMs, () => {
      if (!this.#active) return;
      const kind = this.#draw();
      if (kind !== undefined) this.#strike(kind);
      this.#next();
    });
  }

  #draw(): FaultKind | undefined {
    const { faults } = this.#options;
    let total = 0;
    for (const kind of FAULT_KINDS) total += faults[kind];
    if (total === 0) return undefined;
    let at = this.#random.below(total);
    for (const kind of FAULT_KINDS) {
      at -= faults[kind];
      if (at < 0) return kind;
    }
    return undefined;
  }

  #oneOf<T>(choices: readonly T[]): T {
    return choices[this.#random.below(choices.length)];
  }

  #durationMs(): number {
    const { electionMs } = this.#options;
    return (
      this.#random.unit() *
      this.#oneOf([electionMs / 2, 2 * electionMs, 6 * electionMs, 20 * electionMs])
    );
  }

  #later(run: () => void): void {
    this.#scheduler.after(this.#durationMs(), run);
  }

  /** Anyone, and the leader more often than the others. */
  #victim(): Node {
    const leader = this.#nodes.find((node) => node.member?.isLeader === true);
    return leader !== undefined && this.#random.below(4) === 0 ? leader : this.#oneOf(this.#nodes);
  }

  #strike(kind: FaultKind): void {
    const node = this.#victim();
    const others = this.#nodes.filter((other) => other !== node);
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.#story.record("world", `${kind} ${node.name}`);
    switch (kind) {
      case "powerLoss":
        node.crash("power");
        break;
      case "kill":
        node.crash("kill");
        break;
      case "crashAtPoint":
        node.crashPoints.plan = { point: this.#oneOf(FAULT_POINTS), passes: 1, operations: 0 };
        break;
      case "crashAtDisk":
        node.crashAtDisk(this.#random.below(this.#oneOf([10, 40, 200])));
        break;
      case "stop":
        node.stop();
        break;
      case "allPowerLoss":
        for (const one of this.#nodes)
          node === one || this.#random.below(4) > 0 ? one.crash("power") : undefined;
        break;
      case "pause":
        this.#pause(node);
        break;
      case "isolate":
        this.#cut(
          others.flatMap((other) => [
            this.#links.link(node.name, other.name),
            this.#links.link(other.name, node.name),
          ]),
        );
        break;
      case "crashInstall":
        this.#crashInstall(node);
        break;
      case "deaf":
        this.#cut(others.map((other) => this.#links.link(other.name, node.name)));
        break;
      case "mute":
        this.#cut(others.map((other) => this.#links.link(node.name, other.name)));
        break;
      case "stallAll":
        for (const other of others) this.#stall(node, other);
        break;
      case "split":
        this.#split();
        break;
      case "oneWay":
        if (others.length > 0) this.#cut([this.#links.link(node.name, this.#oneOf(others).name)]);
        break;
      case "slowLink":
        if (others.length > 0) this.#slow(node, this.#oneOf(others));
        break;
      case "stallLink":
        if (others.length > 0) this.#stall(node, this.#oneOf(others));
        break;
      case "slowDisk":
        node.machine.slowSyncUntilMs = this.#scheduler.nowMs + this.#durationMs();
        break;
      case "diskFull":
        node.failDisk("full");
        break;
      case "diskError":
        node.failDisk("once");
        break;
      case "readError":
        node.crash(this.#oneOf(["power", "kill"] as const));
        node.failDisk("read");
        break;
      case "backendError":
        node.failBackend();
        break;
      case "bitFlip":
        this.#flip(node);
        break;
      case "failedSync":
        this.#failSync(node);
        break;
      case "tailFlip":
        this.#flipTail(node);
        break;
      case "liveFlip":
        if (!node.damaged && !node.down && this.#mayDamage()) node.damageLog("anywhere");
        break;
      case "recordDamage":
        if (node.damaged || !this.#mayDamage()) break;
        node.crash(this.#oneOf(["power", "kill"] as const));
        node.damageRecord();
        break;
      case "lyingSync":
        this.#lieSyncs(node);
        break;
      case "slowCpu":
        node.slowTurns = true;
        this.#later(() => {
          node.slowTurns = false;
        });
        break;
      case "clockJump":
        node.clock?.jumpWall((this.#random.unit() - 0.5) * 20_000);
        break;
      case "moveLeader":
        this.#handOver();
        break;
      case "slowHandover":
        this.#slowHandover();
        break;
    }
  }

  #handOver(): void {
    if (!this.#active) return;
    const leader = this.#nodes.find((one) => one.member?.isLeader === true);
    leader?.member?.handOver().catch(() => {});
  }

  /**
   * The leader hears everything late, hands leadership over, and does not know for a while that it
   * has.
   */
  #slowHandover(): void {
    const leader = this.#nodes.find((one) => one.member?.isLeader === true);
    if (leader === undefined) return;
    const { electionMs, longDeafness } = this.#options;
    const others = this.#nodes.filter((one) => one !== leader);
    const links = others.map((one) => this.#links.link(one.name, leader.name));
    if (longDeafness) {
      this.#longHandover(others, links);
      return;
    }
    const slowMs = electionMs * (0.7 + 0.25 * this.#random.unit());
    for (const link of links) link.slowMs = slowMs;
    this.#scheduler.after(this.#random.unit() * 0.4 * electionMs, () => this.#handOver());
    this.#scheduler.after(1.5 * electionMs, () => {
      for (const link of links) link.slowMs = 0;
    });
  }

  /**
   * The same for longer than a successor adds to leases. Voters hear of their candidate a moment
   * later, and confirm the old leader until then: it learns that when its successor has counted the
   * leases for long. Owners that end then leave their leases with what it grants them.
   * @param links from the others to the leader
   */
  #longHandover(others: readonly Node[], links: readonly Link[]): void {
    const { electionMs } = this.#options;
    // A leader that hears nobody in a whole election timeout between two of its looks steps down.
    const slowMs = electionMs * (1.05 + 0.8 * this.#random.unit());
    const between = others.flatMap((one) =>
      others
        .filter((other) => other !== one)
        .map((other) => this.#links.link(one.name, other.name)),
    );
    // While all is heard in time, the successor is known to have the whole log, and begins at once.
    this.#handOver();
    for (const link of links) link.slowMs = slowMs;
    for (const link of between) link.slowMs = electionMs / 10;
    this.#scheduler.after(electionMs / 10, () => {
      for (const link of between) link.slowMs = 0;
    });
    const endsMs = slowMs + (0.1 + 0.2 * this.#random.unit()) * electionMs;
    this.#scheduler.after(endsMs, () => this.#leaseClients.abandon());
    this.#scheduler.after(2.5 * electionMs, () => {
      for (const link of links) link.slowMs = 0;
    });
  }

  /**
   * After a checkpoint of leases the leader changes, and changes again: what they noted is to be
   * taken back in between.
   */
  #watchCheckpoints(seen: number): void {
    if (!this.#active) return;
    const count = this.#checkpoints();
    if (count > seen) {
      this.#scheduler.after(this.#random.unit() * 5000, () => this.#handOver());
      this.#scheduler.after(5000 + this.#random.unit() * 100_000, () => this.#handOver());
    }
    this.#scheduler.after(500, () => this.#watchCheckpoints(count));
  }

  /** While it sleeps, its clock may be set. */
  #pause(node: Node): void {
    const { process, clock } = node;
    if (process === undefined || !process.alive || process.paused) return;
    process.pause();
    this.#later(() => {
      if (!process.alive || !process.paused) return;
      if (this.#random.below(2) === 0) clock?.jumpWall((this.#random.unit() - 0.3) * 60_000);
      this.#scheduler.resume(process);
    });
  }

  /**
   * A member is away until the log does not reach back for it any more, and crashes when it is
   * given a snapshot, once or a few times.
   */
  #crashInstall(node: Node): void {
    const others = this.#nodes.filter((other) => other !== node);
    const point = this.#oneOf(INSTALL_POINTS);
    node.crashPoints.plan = {
      point,
      passes: 1 + this.#random.below(2),
      operations: this.#random.below(3) === 0 ? this.#random.below(20) : 0,
    };
    if (this.#random.below(2) === 0) node.crash(this.#oneOf(["power", "kill"] as const));
    const links = others.flatMap((other) => [
      this.#links.link(node.name, other.name),
      this.#links.link(other.name, node.name),
    ]);
    for (const link of links) link.cut = true;
    const awayMs = 200 + this.#random.unit() * 1500;
    const againMs = awayMs + this.#options.electionMs * (1 + 4 * this.#random.unit());
    // A leader keeps its log for a while for a member that it has sent a snapshot lately; after a
    // restart it has only what its last mark left.
    if (this.#random.below(3) > 0) this.#scheduler.after(awayMs, () => this.#restart(others));
    this.#scheduler.after(againMs, () => {
      for (const link of links) link.cut = false;
      if (this.#active && node.down && !node.refused) node.start();
    });
  }

  #restart(nodes: readonly Node[]): void {
    if (!this.#active) return;
    for (const node of nodes) {
      node.crash("kill");
      this.#scheduler.after(this.#random.unit() * 100, () => {
        if (this.#active && node.down && !node.refused) node.start();
      });
    }
  }

  #cut(links: readonly { cut: boolean }[]): void {
    for (const link of links) link.cut = true;
    this.#later(() => {
      for (const link of links) link.cut = false;
    });
  }

  /** Members fall into two sides, or some pairs only lose sight of each other. */
  #split(): void {
    const partial = this.#random.below(3) === 0;
    const side = new Map(this.#nodes.map((node) => [node, this.#random.below(2)]));
    const links = this.#nodes.flatMap((a) =>
      this.#nodes
        .filter(
          (b) => a !== b && (partial ? this.#random.below(3) === 0 : side.get(a) !== side.get(b)),
        )
        .map((b) => this.#links.link(a.name, b.name)),
    );
    this.#cut(links);
  }

  #slow(a: Node, b: Node): void {
    const link = this.#links.link(a.name, b.name);
    link.slowMs = this.#random.unit() * this.#options.electionMs;
    this.#later(() => {
      link.slowMs = 0;
    });
  }

  #stall(a: Node, b: Node): void {
    const link = this.#links.link(a.name, b.name);
    link.stalled ??= [];
    this.#later(() => this.#links.release(link));
  }

  /** Synced data goes bad on fewer than half of the members. */
  #flip(node: Node): void {
    if (node.damaged || !this.#mayDamage()) return;
    node.crash("power");
    node.damage();
  }

  /**
   * A sync of the log fails, which ends the process; it is started again, and the machine loses
   * power a moment later: what the failed sync left in the system's memory must not have been taken
   * for durable.
   */
  #failSync(node: Node): void {
    if (node.down || node.refused) return;
    const { process } = node;
    node.failSync();
    const forget = defined(process, "the process").onEnd(() => {
      this.#scheduler.after(this.#random.unit() * 20, () => {
        if (!this.#active || !node.down || node.refused) return;
        node.machine.heal();
        node.start();
        this.#scheduler.after(this.#random.unit() * this.#oneOf([50, 200, 1000]), () =>
          node.crash("power"),
        );
      });
    });
    this.#scheduler.after(4 * this.#options.electionMs, forget);
  }

  /** Syncs of the log lie, and the machine loses power a moment later. */
  #lieSyncs(node: Node): void {
    if (node.down || node.damaged || !this.#mayDamage()) return;
    node.machine.faults.lie();
    const { process } = node;
    this.#scheduler.after(this.#random.unit() * this.#oneOf([20, 200, 1000]), () => {
      if (node.process === process) node.crash("power");
    });
  }

  /**
   * A bit of what was acknowledged last flips while the process is down: behind the last mark that
   * says what is on the disk.
   */
  #flipTail(node: Node): void {
    if (node.damaged || !this.#mayDamage()) return;
    node.crash(this.#oneOf(["power", "kill"] as const));
    node.damageLog("tail");
  }
}
