/** What goes wrong in the world of a program: by the seed, and as the program wants it. */
import type { Random } from "@quorate/host";
import { defined } from "@quorate/proto";
import type { Process, Scheduler } from "../base/scheduler.ts";
import type { ClientNetwork } from "../client-network.ts";
import type { Links } from "../links.ts";
import type { Nemesis } from "../nemesis.ts";
import type { Node } from "../node.ts";
import type { Story } from "../report/story.ts";
import type { SimulatedClient, SimulatedNemesis } from "./types.ts";

export interface NemesisParts {
  readonly members: Nemesis;
  readonly nodes: readonly Node[];
  readonly links: Links;
  readonly clients: ReadonlyMap<SimulatedClient, Process>;
  readonly clientNetwork: ClientNetwork;
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly random: Random;
  /** Mean time between two pauses of clients; undefined for none. */
  readonly everyMs: number | undefined;
}

/** How long pauses of clients are at the most: most are short, and some outlive a lease. */
const PAUSES_MS = [100, 1000, 5000, 30_000] as const;

export class ProgramNemesis implements SimulatedNemesis {
  readonly #parts: NemesisParts;
  #isActive = true;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
  }

  /** Begins to let things go wrong. */
  start(): void {
    this.#parts.members.start();
    this.#next();
  }

  #next(): void {
    const { everyMs, random, scheduler, clients } = this.#parts;
    if (everyMs === undefined || clients.size === 0) return;
    scheduler.after(-Math.log(1 - random.unit()) * everyMs, () => {
      if (!this.#isActive) return;
      const client = [...clients.keys()][random.below(clients.size)];
      this.pauseClient(client, random.unit() * PAUSES_MS[random.below(PAUSES_MS.length)]);
      this.#next();
    });
  }

  pauseClient(client: SimulatedClient, ms: number): void {
    const { scheduler, story, clients } = this.#parts;
    const { name } = client;
    const process = defined(clients.get(client), "a client of this world");
    if (process.paused) return;
    story.record(name, `is paused for ${ms.toFixed(0)} ms`);
    process.pause();
    scheduler.after(ms, () => {
      story.record(name, "goes on");
      if (process.paused) scheduler.resume(process);
    });
  }

  pauseMember(member: number, ms: number): void {
    const { scheduler } = this.#parts;
    const { process } = this.#node(member);
    if (process === undefined || process.paused) return;
    process.pause();
    scheduler.after(ms, () => {
      if (process.paused) scheduler.resume(process);
    });
  }

  killMember(member: number): void {
    this.#node(member).crash("kill");
  }

  startMember(member: number): void {
    const node = this.#node(member);
    if (node.down) node.start();
  }

  isolateMember(member: number, ms: number): void {
    const { nodes, links, scheduler } = this.#parts;
    const { name } = this.#node(member);
    const cut = nodes
      .filter((other) => other.name !== name)
      .flatMap((other) => [links.link(name, other.name), links.link(other.name, name)]);
    for (const link of cut) link.cut = true;
    scheduler.after(ms, () => {
      for (const link of cut) link.cut = false;
    });
  }

  leader(): number | undefined {
    const at = this.#parts.nodes.findIndex(({ member }) => member?.isLeader === true);
    return at === -1 ? undefined : at;
  }

  stop(): void {
    const { members, clients, clientNetwork, scheduler } = this.#parts;
    this.#isActive = false;
    members.stop();
    clientNetwork.faulty = false;
    for (const process of clients.values()) if (process.paused) scheduler.resume(process);
  }

  #node(member: number): Node {
    return defined(this.#parts.nodes[member], `member ${member}`);
  }
}
