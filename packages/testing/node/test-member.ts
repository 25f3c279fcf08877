/** One member of a cluster in a test: its files, its addresses, and what a test does to it. */
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

/** What members of a cluster share. */
export interface Surroundings {
  readonly faults: CallFaults;
  /** By how much the time of leases is ahead. */
  readonly leaseOffset: { ms: number };
}

export class TestMember {
  readonly name: string;
  /** Its client URL, the same after each start. */
  readonly endpoint: string;
  readonly peerUrl: string;
  /** @internal */
  readonly gate: Gate = new Gate();
  /** @internal */
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

  /** Whether it runs, paused or not. */
  get isRunning(): boolean {
    return this.#launched !== undefined;
  }

  get isPaused(): boolean {
    return this.gate.isShut;
  }

  get isLeader(): boolean {
    return this.#launched?.member.isLeader === true;
  }

  /** Its member id; 0n before its first start. */
  get id(): bigint {
    return this.#id;
  }

  /** @internal The member, while it runs. */
  get launched(): LaunchedMember {
    if (this.#launched === undefined) throw new Error(`${this.name} does not run`);
    return this.#launched;
  }

  /** A client of this member alone, without sockets. Throws while it does not run. */
  client(options: LocalClientOptions = {}): Client {
    return this.launched.client(options);
  }

  /** Starts it on the files that it has; resolves when it serves. Does nothing if it runs. */
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

  /** Resolves when it takes part in a cluster that has a leader. */
  async ready(): Promise<void> {
    await this.#launched?.ready;
  }

  /** Ends it as kill -9 does. What was acknowledged is still on its disk. */
  async kill(): Promise<void> {
    const launched = this.#launched;
    if (launched === undefined) return;
    this.#launched = undefined;
    this.gate.clear();
    this.#memory.disk.kill(nodeRandom());
    await launched.kill();
  }

  /** Ends it in order: it hands leadership over first. */
  async stop(): Promise<void> {
    this.resume();
    await this.#launched?.stop();
  }

  /** As kill -STOP: it does nothing, and its connections stay. */
  pause(): void {
    if (this.#launched !== undefined) this.gate.shut();
  }

  /** It goes on, with what has waited. */
  resume(): void {
    this.gate.open();
  }

  /**
   * From now on a sync of its disk takes so long; 0: none. The log finds out with the first write,
   * which may still be fast.
   */
  slowDisk(syncMs: number): void {
    this.#syncMs.value = syncMs;
  }
}
