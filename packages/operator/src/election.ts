/**
 * One of several operators works, by a Lease (client-go: tools/leaderelection). One that cannot
 * renew it in time stops at once; whether another's has ended is measured with the own clock.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { createOnce, type Kube, KubeError, type KubeObject } from "./base/kube.ts";

export const LEASE_NAME = "quorate-operator";
const DURATION_MS = 15_000;
const DEADLINE_MS = 10_000;
const PERIOD_MS = 2000;

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export interface ElectionDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class Election {
  readonly #namespace: string;
  readonly #identity: string;
  readonly #deps: ElectionDeps;
  readonly #started: () => void;
  readonly #lost: () => void;
  #timer: Timer | undefined;
  #isLeader = false;
  #isStopped = false;
  #renewedMs = 0;
  #seen = "";
  #seenMs = 0;

  /**
   * @param identity unlike that of any other operator
   * @param started is called once, when this one may work
   * @param lost is called once, when it may no longer
   */
  constructor(
    namespace: string,
    identity: string,
    started: () => void,
    lost: () => void,
    deps: ElectionDeps,
  ) {
    this.#namespace = namespace;
    this.#identity = identity;
    this.#started = started;
    this.#lost = lost;
    this.#deps = deps;
  }

  start(): void {
    void this.#turn();
  }

  /** Frees the lease, so that another operator need not wait for its end. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    if (!this.#isLeader) return;
    this.#isLeader = false;
    await this.#write({ holderIdentity: "" }, "").catch(() => {});
  }

  async #turn(): Promise<void> {
    const { clock, logger } = this.#deps;
    try {
      await this.#attempt();
    } catch (error) {
      logger.debug("the lease could not be renewed", { error: String(error) });
    }
    if (this.#isStopped) return;
    if (this.#isLeader && clock.monotonicMs() - this.#renewedMs > DEADLINE_MS) {
      this.#isLeader = false;
      this.#isStopped = true;
      this.#lost();
      return;
    }
    this.#timer = clock.after(PERIOD_MS, () => void this.#turn());
  }

  async #attempt(): Promise<void> {
    const { kube, clock } = this.#deps;
    const lease = await kube.get<KubeObject<LeaseSpec>>("Lease", this.#namespace, LEASE_NAME);
    const beganMs = clock.monotonicMs();
    if (lease === undefined) {
      await createOnce(kube, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: LEASE_NAME, namespace: this.#namespace },
        spec: {},
      });
      return;
    }
    const { holderIdentity = "", renewTime = "", leaseTransitions = 0 } = lease.spec ?? {};
    const seen = `${holderIdentity} ${renewTime}`;
    if (seen !== this.#seen) {
      this.#seen = seen;
      this.#seenMs = beganMs;
    }
    const isOwn = holderIdentity === this.#identity;
    if (holderIdentity !== "" && !isOwn && beganMs - this.#seenMs < DURATION_MS) return;
    const now = new Date(clock.wallMs()).toISOString().replace("Z", "000Z");
    const taken = isOwn ? {} : { acquireTime: now, leaseTransitions: leaseTransitions + 1 };
    const renewed = {
      holderIdentity: this.#identity,
      leaseDurationSeconds: DURATION_MS / 1000,
      renewTime: now,
      ...taken,
    };
    try {
      await this.#write(renewed, lease.metadata.resourceVersion ?? "");
    } catch (error) {
      if (error instanceof KubeError && error.code === "Conflict") return;
      throw error;
    }
    this.#renewedMs = beganMs;
    if (this.#isLeader || this.#isStopped) return;
    this.#isLeader = true;
    this.#started();
  }

  /** @param resourceVersion "" for whatever it is */
  async #write(spec: object, resourceVersion: string): Promise<void> {
    const metadata = resourceVersion === "" ? {} : { resourceVersion };
    const patch = { metadata, spec };
    await this.#deps.kube.patch("Lease", this.#namespace, LEASE_NAME, patch, "");
  }
}
