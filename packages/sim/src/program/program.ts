/**
 * Programs that use a cluster, under the simulator's clock, network and faults.
 *
 *     a seed decides --> members (the real ones), links, disks, faults, pauses of clients
 *     a program has  --> clients of packages/client over the simulated network, each with a clock
 *
 * A program that waits for nothing but its clients and clocks does the same for the same seed.
 */
import { type Random, SeededRandom } from "@quorate/host";
import { FAULT_KINDS, type FaultKind, weightsOf } from "../base/fault-kinds.ts";
import { optionsOf, type SimOptions } from "../base/options.ts";
import { watchRejections } from "../base/rejections.ts";
import { type Process, Scheduler } from "../base/scheduler.ts";
import { ClientNetwork } from "../client-network.ts";
import { Cluster } from "../cluster.ts";
import { configsOf } from "../member-config.ts";
import { Nemesis } from "../nemesis.ts";
import type { Node } from "../node.ts";
import { Story } from "../report/story.ts";
import { makeClient, ProgramClock } from "./client.ts";
import { ProgramNemesis } from "./nemesis.ts";
import type { Program, ProgramOptions, ProgramRun, SimulatedClient } from "./types.ts";

/** What goes wrong by itself; disks lose nothing that was synced. */
const FAULTS: ReadonlySet<FaultKind> = new Set<FaultKind>([
  "powerLoss",
  "kill",
  "stop",
  "pause",
  "isolate",
  "split",
  "oneWay",
  "deaf",
  "mute",
  "slowLink",
  "stallLink",
  "slowDisk",
  "slowCpu",
  "moveLeader",
]);
const MAX_MEMBERS = 7;
/** With more faults than that a program gets nothing done. */
const MIN_FAULT_EVERY_MS = 500;
const DEFAULT_LIMIT_MS = 600_000;
const STORY_LINES = 100;
const SHOWN_LINES = 12;
/** The first leader of members that nothing happens to is there long before. */
const FIRST_LEADER_MS = 60_000;

/** The options of a seed, without what programs do not expect of their cluster. */
function simOptionsOf(seed: number, members: number, faults: boolean): SimOptions {
  const drawn = optionsOf(seed, undefined, {
    set: {
      theme: "mixed",
      members,
      oneWayDials: false,
      clientWires: false,
      users: false,
      frontMs: 0,
      quotaBytes: 0,
      membershipEveryMs: 0,
      churnEveryMs: 0,
      smallBounds: false,
      corruption: 0,
      heartbeatMs: 100,
      electionMs: 1000,
    },
  });
  const kinds = FAULT_KINDS.filter((kind) => faults && FAULTS.has(kind));
  return {
    ...drawn,
    faultEveryMs: Math.max(drawn.faultEveryMs, MIN_FAULT_EVERY_MS),
    ...(!faults && { loss: 0, duplication: 0, reordering: 0, clientBreaks: 0 }),
    faults: weightsOf(Object.fromEntries(kinds.map((kind) => [kind, 1]))),
  };
}

/** Runs a program under a seed. Rejects only for options that are no good. */
export async function runProgram(
  seed: number,
  program: Program,
  options: ProgramOptions = {},
): Promise<ProgramRun> {
  const { clients: count = 3, members = 3, faults = true, limitMs = DEFAULT_LIMIT_MS } = options;
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError("a seed must be a whole number from 0");
  if (members < 1 || members > MAX_MEMBERS)
    throw new RangeError(`members must be from 1 to ${MAX_MEMBERS}`);
  const world = new World(simOptionsOf(seed, members, faults), count, faults);
  await world.build();
  return world.run(program, limitMs);
}

class World {
  readonly #options: SimOptions;
  readonly #clientCount: number;
  readonly #faults: boolean;
  readonly #scheduler = new Scheduler();
  readonly #random: Random;
  readonly #story: Story;
  readonly #cluster: Cluster;
  readonly #nodes: Node[] = [];
  #nemesis: ProgramNemesis | undefined;
  #clients: ReadonlyMap<SimulatedClient, Process> = new Map();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: SimOptions, clientCount: number, faults: boolean) {
    this.#options = options;
    this.#clientCount = clientCount;
    this.#faults = faults;
    this.#random = new SeededRandom(BigInt(options.seed)).fork("program");
    this.#story = new Story(() => this.#scheduler.nowMs, STORY_LINES);
    this.#cluster = new Cluster(options, {
      scheduler: this.#scheduler,
      story: this.#story,
      random: this.#random,
      fail: (error) => this.#fail(error),
    });
  }

  async build(): Promise<void> {
    const options = this.#options;
    const scheduler = this.#scheduler;
    const story = this.#story;
    const fail = (error: unknown): void => this.#fail(error);
    const { network, leaseCheck } = this.#cluster;
    for (const config of await configsOf(options))
      this.#nodes.push(this.#cluster.node(config.name, config));
    const clientNetwork = new ClientNetwork(options, {
      scheduler,
      random: this.#random.fork("client network"),
      fail,
    });
    const nodes = this.#nodes;
    const parts = { scheduler, story, network: clientNetwork, nodes, leaseCheck };
    const made = Array.from({ length: this.#clientCount }, (_, i) => makeClient(i, parts));
    this.#clients = new Map(made.map(({ client, process }) => [client, process]));
    const members = new Nemesis(options, {
      nodes: this.#nodes,
      links: network.links,
      scheduler,
      story,
      random: this.#random.fork("nemesis"),
      mayDamage: () => false,
      checkpoints: () => 0,
      leaseClients: { abandon: () => {} },
    });
    this.#nemesis = new ProgramNemesis({
      members,
      nodes: this.#nodes,
      links: network.links,
      clients: this.#clients,
      clientNetwork,
      scheduler,
      story,
      random: this.#random.fork("pauses"),
      everyMs: this.#faults ? 2 * options.faultEveryMs : undefined,
    });
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
  }

  async run(program: Program, limitMs: number): Promise<ProgramRun> {
    const fail = (error: unknown): void => this.#fail(error);
    try {
      await watchRejections(fail, () => this.#live(program, limitMs));
    } catch (error) {
      fail(error);
    }
    for (const client of this.#clients.keys()) client.close();
    for (const node of this.#nodes) node.process?.end();
    return {
      simulatedMs: this.#scheduler.nowMs,
      hash: this.#story.hash,
      failure: this.#failure?.error,
      story: this.#story.last(SHOWN_LINES),
    };
  }

  async #live(program: Program, limitMs: number): Promise<void> {
    for (const node of this.#nodes) node.start();
    await this.#until(() => this.#nodes.some(({ member }) => member?.isLeader), FIRST_LEADER_MS);
    const nemesis = this.#nemesis as ProgramNemesis;
    nemesis.start();
    const clock = new ProgramClock(this.#scheduler, undefined);
    const random = this.#random.fork("program's own");
    const clients = [...this.#clients.keys()];
    const world = { clients, nemesis, clock, random: () => random.unit() };
    let isOver = false;
    program(world).then(
      () => {
        isOver = true;
      },
      (error: unknown) => this.#fail(error),
    );
    await this.#until(() => isOver, limitMs);
  }

  /** Runs events until it is so. Rejects when something is found, or that takes too long. */
  async #until(isSo: () => boolean | undefined, limitMs: number): Promise<void> {
    let isLate = false;
    const timer = this.#scheduler.after(limitMs, () => {
      isLate = true;
    });
    await this.#scheduler.run(
      () => isSo() === true || isLate,
      () => {
        if (this.#failure !== undefined) throw this.#failure.error;
        this.#cluster.raftCheck.look();
      },
    );
    timer.cancel();
    if (isSo() !== true)
      throw new Error(
        `not over within ${limitMs} simulated ms: a program may wait for its clients and clocks ` +
          "alone, and not for timers, files or sockets",
      );
  }
}
