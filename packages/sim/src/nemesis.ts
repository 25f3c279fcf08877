/** What goes wrong, when, and for how long. */
import type { Random } from "@quorate/host";
import type { FaultPoint } from "@quorate/server";
import type { Network } from "./network.ts";
import type { Node } from "./node.ts";
import { FAULT_KINDS, type FaultKind, type SimOptions } from "./options.ts";
import type { Story } from "./report/story.ts";
import type { Scheduler } from "./scheduler.ts";

const FAULT_POINTS: readonly FaultPoint[] = [
  "before-wal-append",
  "after-wal-append",
  "after-wal-sync",
  "before-send",
  "before-apply",
  "after-apply",
  "before-backend-flush",
  "after-backend-flush",
  "before-snapshot-mark",
  "after-snapshot-mark",
  "before-snapshot-save",
  "before-snapshot-install",
  "after-snapshot-install",
  "before-log-release",
];

export class Nemesis {
  readonly #options: SimOptions;
  readonly #nodes: readonly Node[];
  readonly #network: Network;
  readonly #scheduler: Scheduler;
  readonly #story: Story;
  readonly #random: Random;
  #active = true;
  /** How often each fault struck. */
  readonly counts = new Map<FaultKind, number>();

  constructor(options: SimOptions, deps: { nodes: readonly Node[]; network: Network; scheduler: Scheduler; story: Story; random: Random }) {
    this.#options = options;
    this.#nodes = deps.nodes;
    this.#network = deps.network;
    this.#scheduler = deps.scheduler;
    this.#story = deps.story;
    this.#random = deps.random;
  }

  /** Begins to let things go wrong. */
  start(): void {
    for (const node of this.#nodes) node.start();
    this.#next();
    // Who is down for whatever reason comes up again after a while.
    this.#watchDown();
  }

  /** From now on nothing new goes wrong, and what did is put right; members that are down are started. */
  stop(): void {
    this.#active = false;
    this.#network.heal();
    for (const node of this.#nodes) {
      node.healDisk();
      node.crashAt = undefined;
      node.slowTurns = false;
      if (node.process?.paused === true) this.#scheduler.resume(node.process);
    }
    this.#watchDown();
  }

  #watchDown(): void {
    for (const node of this.#nodes) {
      if (!node.down || node.refused || (this.#active && this.#random.below(2) === 0)) continue;
      node.healDisk();
      node.start();
    }
    const waitMs = this.#active ? 50 + this.#random.unit() * this.#random.unit() * 4000 : 500;
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
    return this.#random.unit() * this.#oneOf([electionMs / 2, 2 * electionMs, 6 * electionMs, 20 * electionMs]);
  }

  #later(run: () => void): void {
    this.#scheduler.after(this.#durationMs(), run);
  }

  #strike(kind: FaultKind): void {
    const node = this.#oneOf(this.#nodes);
    const others = this.#nodes.filter((other) => other !== node);
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.#story.tell("world", `${kind} ${node.name}`);
    switch (kind) {
      case "powerLoss":
        node.crash("power");
        break;
      case "kill":
        node.crash("kill");
        break;
      case "crashAtPoint":
        node.crashAt = this.#oneOf(FAULT_POINTS);
        break;
      case "crashAtDisk":
        node.crashAtDisk(this.#random.below(this.#oneOf([10, 40, 200])));
        break;
      case "stop":
        node.stop();
        break;
      case "allPowerLoss":
        for (const one of this.#nodes) node === one || this.#random.below(4) > 0 ? one.crash("power") : undefined;
        break;
      case "pause":
        this.#pause(node);
        break;
      case "isolate":
        this.#cut(others.flatMap((other) => [this.#network.link(node.name, other.name), this.#network.link(other.name, node.name)]));
        break;
      case "split":
        this.#split();
        break;
      case "oneWay":
        if (others.length > 0) this.#cut([this.#network.link(node.name, this.#oneOf(others).name)]);
        break;
      case "slowLink":
        if (others.length > 0) this.#slow(node, this.#oneOf(others));
        break;
      case "stallLink":
        if (others.length > 0) this.#stall(node, this.#oneOf(others));
        break;
      case "slowDisk":
        node.slowSyncUntilMs = this.#scheduler.nowMs + this.#durationMs();
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
        this.#nodes
          .find((one) => one.member?.isLeader === true)
          ?.member?.handOver()
          .catch(() => {});
        break;
    }
  }

  #pause(node: Node): void {
    const { process } = node;
    if (process === undefined || !process.alive || process.paused) return;
    process.pause();
    this.#later(() => {
      if (process.alive && process.paused) this.#scheduler.resume(process);
    });
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
        .filter((b) => a !== b && (partial ? this.#random.below(3) === 0 : side.get(a) !== side.get(b)))
        .map((b) => this.#network.link(a.name, b.name)),
    );
    this.#cut(links);
  }

  #slow(a: Node, b: Node): void {
    const link = this.#network.link(a.name, b.name);
    link.slowMs = this.#random.unit() * this.#options.electionMs;
    this.#later(() => {
      link.slowMs = 0;
    });
  }

  #stall(a: Node, b: Node): void {
    const link = this.#network.link(a.name, b.name);
    link.stalled ??= [];
    this.#later(() => this.#network.release(link));
  }

  /** Synced data goes bad on fewer than half of the members. */
  #flip(node: Node): void {
    const flipped = this.#nodes.filter((one) => one.damaged).length;
    if (node.damaged || 2 * (flipped + 1) >= this.#nodes.length) return;
    node.crash("power");
    node.damage();
  }
}
