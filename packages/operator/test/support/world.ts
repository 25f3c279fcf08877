/** One cluster, its operator, and what is around them, on a clock that the test moves. */
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { ClusterReconciler, OperatorMetrics, type QuorateCluster } from "../../index.ts";
import { Cloud, fakeCertifier } from "./cloud.ts";
import { MemoryKube } from "./memory-kube.ts";

/** The operator's process has ended in the middle of something. */
export class Killed extends Error {}

export class World {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly kube = new MemoryKube(() => this.clock.wallMs());
  readonly cloud: Cloud;
  readonly metrics = new OperatorMetrics();
  readonly #reconciler: ClusterReconciler;
  /** Called before and after each call of the operator; it may throw Killed. */
  killer: MemoryKube["around"] = () => {};
  /** What the operator said. */
  log: string[] = [];

  constructor(seed: bigint, settleMs = 30_000) {
    this.random = new SeededRandom(seed);
    this.cloud = new Cloud(this.kube, this.random.fork("cloud"), () => this.clock.wallMs());
    const logger = { ...silentLogger, info: this.#log, warn: this.#log };
    this.#reconciler = new ClusterReconciler(
      { settleMs },
      {
        kube: this.kube,
        members: this.cloud.members,
        certifier: fakeCertifier,
        clock: this.clock,
        logger,
        metrics: this.metrics,
      },
    );
  }

  readonly #log = (_text: string, fields: object = {}): void => {
    this.log.push(JSON.stringify(fields));
  };

  async create(spec: Partial<QuorateCluster["spec"]> = {}): Promise<void> {
    await this.kube.create({
      apiVersion: "quorate.dev/v1alpha1",
      kind: "QuorateCluster",
      metadata: { name: "db", namespace: "ns" },
      spec: {
        size: 3,
        image: "quorate:1",
        storage: { size: "1Gi", onDelete: "Keep" },
        recovery: "manual",
        replaceAfterSeconds: 60,
        certificates: { validDays: 90 },
        users: false,
        ...spec,
      },
    });
  }

  get cluster(): QuorateCluster {
    return this.kube.find<QuorateCluster>("QuorateCluster", "db")!;
  }

  change(patch: object): Promise<void> {
    return this.kube.patch("QuorateCluster", "ns", "db", patch as Record<string, unknown>, "");
  }

  condition(type: string): string {
    const found = this.cluster.status?.conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  /** One second: a look of the operator, in which it may be killed, and what else happens. */
  async second(): Promise<void> {
    this.kube.around = this.killer;
    try {
      for (let steps = 0; steps < 5; steps++)
        if ((await this.#reconciler.reconcile({ namespace: "ns", name: "db" })) !== 0) break;
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
    this.kube.around = () => {};
    this.cloud.tick();
    this.cloud.write();
    this.clock.advance(1000);
  }

  /** Lets time pass until it holds; throws after so many seconds. */
  async until(what: string, holds: () => boolean, seconds = 600): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      if (holds()) return;
      await this.second();
    }
    const said = JSON.stringify(this.cluster.status?.conditions, undefined, 1);
    throw new Error(
      `not in ${seconds} s: ${what}; members ${this.cloud.membership}\n${said}\n${this.log.slice(-12).join("\n")}`,
    );
  }

  /** All is as wanted for the spec as it is now, with so many members. */
  async settled(size: number): Promise<void> {
    await this.until(`${size} members`, () => {
      const { status, metadata } = this.cluster;
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      return (
        ready?.status === "True" &&
        ready.observedGeneration === metadata.generation &&
        status?.readyMembers === size &&
        this.cloud.membership.split(" ").length === size
      );
    });
  }
}
