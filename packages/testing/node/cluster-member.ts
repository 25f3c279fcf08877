/** A member of a cluster in a test: its files, its addresses, and what stands around it. */
import type { Client } from "@quorate/client";
import {
  type LaunchedMember,
  type LocalClientOptions,
  launch,
  newMemory,
} from "@quorate/embed/node";
import { nodeClock, nodeRandom } from "@quorate/host/node";
import type { ConfigFile } from "@quorate/server";
import {
  type CallFaults,
  Gate,
  GatedClock,
  gatedPeers,
  gatedServices,
  MovedClock,
  OpenStreams,
} from "./gate.ts";
import type { TestMember } from "./test-member.ts";

/** What members of a cluster share. */
export interface Surroundings {
  readonly faults: CallFaults;
  /** By how much the time of leases is ahead. */
  readonly leaseOffset: { ms: number };
}

export class ClusterMember implements TestMember {
  readonly name: string;
  readonly endpoint: string;
  readonly peerUrl: string;
  readonly gate: Gate = new Gate();
  readonly streams: OpenStreams = new OpenStreams();
  /** How long a sync of the disk takes. */
  readonly #syncMs = { value: 0 };
  readonly #memory = newMemory({ clock: nodeClock, syncDelayMs: () => this.#syncMs.value });
  readonly #config: ConfigFile;
  readonly #surroundings: Surroundings;
  #launched: LaunchedMember | undefined;
  #id = 0n;

  /** Made by testCluster(). */
  constructor(config: ConfigFile, surroundings: Surroundings) {
    this.#config = config;
    this.#surroundings = surroundings;
    this.name = config.name ?? "";
    this.endpoint = String(config["listen-client-urls"]);
    this.peerUrl = String(config["listen-peer-urls"]);
  }

  get isRunning(): boolean {
    return this.#launched !== undefined;
  }

  get isPaused(): boolean {
    return this.gate.isShut;
  }

  get isLeader(): boolean {
    return this.#launched?.member.isLeader === true;
  }

  get id(): bigint {
    return this.#id;
  }

  /** The member, while it runs. */
  get launched(): LaunchedMember {
    if (this.#launched === undefined) throw new Error(`${this.name} does not run`);
    return this.#launched;
  }

  client(options: LocalClientOptions = {}): Client {
    return this.launched.client(options);
  }

  async start(): Promise<void> {
    if (this.#launched !== undefined) return;
    const { faults, leaseOffset } = this.#surroundings;
    const clock = new GatedClock(nodeClock, this.gate);
    const launched = await launch(
      { dataDir: ":memory:", config: this.#config },
      {
        clock,
        memory: this.#memory,
        adapt: (deps) => ({
          ...gatedPeers(this.gate, deps),
          leaseClock: new MovedClock(clock, leaseOffset),
        }),
        around: (services) => gatedServices(services, this.gate, faults, this.streams),
      },
    );
    this.#launched = launched;
    this.#id = launched.member.id;
    launched.events.once("closed", () => {
      if (this.#launched === launched) this.#launched = undefined;
    });
  }

  async ready(): Promise<void> {
    await this.#launched?.ready;
  }

  async kill(): Promise<void> {
    const launched = this.#launched;
    if (launched === undefined) return;
    this.#launched = undefined;
    this.gate.clear();
    this.#memory.disk.kill(nodeRandom());
    await launched.kill();
  }

  async stop(): Promise<void> {
    this.resume();
    await this.#launched?.stop();
  }

  pause(): void {
    if (this.#launched !== undefined) this.gate.shut();
  }

  resume(): void {
    this.gate.open();
  }

  slowDisk(syncMs: number): void {
    this.#syncMs.value = syncMs;
  }
}
