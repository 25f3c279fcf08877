/**
 * The links between members: every pair has two, one for each direction, and each may be slow,
 * lossy, cut or stalled.
 */
import type { Random } from "@quorate/host";
import type { SimOptions } from "./base/options.ts";
import type { Scheduler } from "./base/scheduler.ts";

/** One direction between two members. */
export interface Link {
  cut: boolean;
  /** Added to the latency of each message. */
  slowMs: number;
  /** While set, messages wait here. */
  stalled: (() => void)[] | undefined;
}

/** All of them; a link exists from its first use on. */
export class Links {
  readonly #options: SimOptions;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  /** By who sends, then by who receives. */
  readonly #links = new Map<string, Map<string, Link>>();
  /** While false, links do what they are there for. */
  faulty = true;
  /** No member can dial the first one. */
  #isOneWay: boolean;

  constructor(options: SimOptions, deps: { scheduler: Scheduler; random: Random }) {
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#random = deps.random;
    this.#isOneWay = options.oneWayDials;
  }

  /** Whether members can dial this one. One that they cannot dial can dial them all the same. */
  canDial(name: string): boolean {
    return !this.#isOneWay || name !== "m0";
  }

  /** From now on members can dial each other. */
  openDials(): void {
    this.#isOneWay = false;
  }

  /** That from one member to another. */
  link(from: string, to: string): Link {
    let links = this.#links.get(from);
    if (links === undefined) this.#links.set(from, (links = new Map()));
    let link = links.get(to);
    if (link === undefined) links.set(to, (link = { cut: false, slowMs: 0, stalled: undefined }));
    return link;
  }

  /** Everything that was cut, slow or stalled is well again. */
  heal(): void {
    this.faulty = false;
    const all = [...this.#links].flatMap(([from, links]) =>
      [...links].map(([to, link]) => [`${from}>${to}`, link] as const),
    );
    for (const [, link] of all.sort(([a], [b]) => (a < b ? -1 : 1))) {
      link.cut = false;
      link.slowMs = 0;
      this.release(link);
    }
  }

  /** Delivers all that a stalled link held back. */
  release(link: Link): void {
    const waiting = link.stalled ?? [];
    link.stalled = undefined;
    for (const deliver of waiting) deliver();
  }

  /** How long the next message takes. */
  latencyMs(link: Link): number {
    const { latencyMs, jitterMs } = this.#options;
    return latencyMs + this.#random.unit() * jitterMs + link.slowMs;
  }

  /** Whether something that strikes with this chance does so now; never while all is well. */
  happens(chance: number): boolean {
    return this.faulty && chance > 0 && this.#random.unit() < chance;
  }

  /** Brings something over a link, unless it is cut or loses it. */
  carry(link: Link, arrive: () => void): void {
    if (link.cut || this.happens(this.#options.loss)) return;
    this.#scheduler.after(this.latencyMs(link), () => {
      if (link.cut) return;
      if (link.stalled !== undefined) link.stalled.push(arrive);
      else arrive();
    });
  }

  /** Forgets what stalled links hold back. */
  dropStalled(): void {
    for (const links of this.#links.values())
      for (const link of links.values()) if (link.stalled !== undefined) link.stalled = [];
  }
}
