/**
 * Hurts the cluster: draws faults from a seed, begins them, ends them when their time is up, and
 * ends all of them at the heal. At most a minority is broken at a time, except now and then.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "@quorate/host";
import { MaintenanceService } from "@quorate/proto";
import { TestClient } from "../support/client.ts";
import { FAULTS, type Fault, type FaultSource, WHOLE_CLUSTER_FAULTS } from "./faults.ts";
import type { RunningCluster } from "./members.ts";

export interface NemesisOptions {
  /** Mean time between two faults. */
  readonly everyMs: number;
  readonly maxPauseMs: number;
  /** Called with each beginning and end. */
  readonly log: (text: string) => void;
}

/**
 * One in so many faults is of the whole cluster; one in so many may break a majority together with
 * others.
 */
const WHOLE_CLUSTER_ONE_IN = 20;
const MAJORITY_ONE_IN = 15;
const LEADER_LIMIT_MS = 1000;

/**
 * The member that says that it leads, in the newest term if several do; undefined if none says so
 * soon.
 */
async function leaderName({ nodes, cluster }: RunningCluster): Promise<string | undefined> {
  const asked = nodes
    .filter((node) => node.isUp)
    .map(async (node) => {
      const client = new TestClient(node.test.clientAddress, cluster.identity);
      try {
        const status = await client.call(MaintenanceService.methods.Status, {}, LEADER_LIMIT_MS);
        return status.leader !== 0n && status.leader === status.header!.memberId
          ? { name: node.name, term: status.raftTerm }
          : undefined;
      } catch {
        return undefined;
      } finally {
        client.close();
      }
    });
  const leaders = (await Promise.all(asked)).filter((one) => one !== undefined);
  return leaders.sort((a, b) => Number(b.term) - Number(a.term))[0]?.name;
}

/**
 * The next kind of the faults that are not of the whole cluster: by their weights, but each kind
 * once before one comes again, so that a short run has all of them too.
 * @param counts how often each has struck
 */
export function drawKind(random: Random, counts: ReadonlyMap<string, number>): string {
  const all = Object.keys(FAULTS);
  const fresh = all.filter((name) => !counts.has(name));
  const kinds = fresh.length > 0 ? fresh : all;
  let at = random.unit() * kinds.reduce((sum, name) => sum + FAULTS[name].weight, 0);
  return kinds.find((name) => (at -= FAULTS[name].weight) < 0) ?? kinds.at(-1)!;
}

export class Nemesis {
  readonly #running: RunningCluster;
  readonly #random: Random;
  readonly #options: NemesisOptions;
  readonly #active = new Map<Fault, NodeJS.Timeout>();
  /** Beginnings and ends under way. */
  readonly #moves = new Set<Promise<void>>();
  /** How many of each kind there were. */
  readonly counts = new Map<string, number>();
  /** What went wrong with the faults themselves. */
  trouble: Error | undefined;
  #stopped = false;
  /** Ends the pause between two faults. */
  readonly #wake = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(running: RunningCluster, random: Random, options: NemesisOptions) {
    this.#running = running;
    this.#random = random;
    this.#options = options;
  }

  get active(): string[] {
    return [...this.#active.keys()].map(({ text }) => text);
  }

  start(): void {
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const pauseMs = -Math.log(1 - this.#random.unit()) * this.#options.everyMs;
      await delay(Math.min(pauseMs, 4 * this.#options.everyMs), undefined, {
        signal: this.#wake.signal,
      }).catch(() => {});
      if (this.#stopped) return;
      const leader = await leaderName(this.#running);
      if (this.#stopped) return;
      const { maxPauseMs } = this.#options;
      const chosen = this.#choose({
        running: this.#running,
        random: this.#random,
        leader,
        maxPauseMs,
      });
      if (chosen !== undefined) this.#begin(chosen.kind, chosen.fault);
    }
  }

  #choose(source: FaultSource): { kind: string; fault: Fault } | undefined {
    const { random } = source;
    let kind: string;
    let fault: Fault;
    const isWhole = random.below(WHOLE_CLUSTER_ONE_IN) === 0;
    if (isWhole) {
      const kinds = Object.keys(WHOLE_CLUSTER_FAULTS);
      kind = kinds[random.below(kinds.length)];
      fault = WHOLE_CLUSTER_FAULTS[kind](source);
    } else {
      kind = drawKind(random, this.counts);
      fault = FAULTS[kind].make(source);
    }
    const mayBreakMost = random.below(MAJORITY_ONE_IN) === 0;
    const taken = new Set([...this.#active.keys()].flatMap(({ targets }) => targets));
    if (fault.targets.some((target) => taken.has(target))) return undefined;
    const broken = new Set([fault, ...this.#active.keys()].flatMap(({ breaks }) => breaks));
    const minority = Math.floor((this.#running.nodes.length - 1) / 2);
    if (broken.size > minority && !isWhole && !mayBreakMost) return undefined;
    return { kind, fault };
  }

  #begin(kind: string, fault: Fault): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.#options.log(`${fault.text}, ${(fault.durationMs / 1000).toFixed(1)} s`);
    this.#move(async () => {
      // The targets are taken from now on, the time counts from when it has begun.
      this.#active.set(
        fault,
        setTimeout(() => {}, 0),
      );
      await fault.begin();
      if (this.#stopped) return;
      this.#active.set(
        fault,
        setTimeout(() => this.#move(() => this.#end(fault)), fault.durationMs),
      );
    });
  }

  async #end(fault: Fault): Promise<void> {
    if (!this.#active.has(fault)) return;
    clearTimeout(this.#active.get(fault));
    await fault.end();
    this.#active.delete(fault);
    this.#options.log(`end of ${fault.text}`);
  }

  #move(what: () => Promise<void>): void {
    const move = what().catch((error: Error) => {
      this.trouble ??= error;
    });
    this.#moves.add(move);
    move.finally(() => this.#moves.delete(move));
  }

  /**
   * Begins no more faults and ends all there are; resolves when the cluster is as it was but for
   * the time it needs.
   */
  async heal(): Promise<void> {
    this.#stopped = true;
    this.#wake.abort();
    await this.#loop;
    while (this.#moves.size > 0) await Promise.all(this.#moves);
    for (const fault of [...this.#active.keys()]) await this.#end(fault);
    if (this.trouble !== undefined) throw this.trouble;
  }
}
