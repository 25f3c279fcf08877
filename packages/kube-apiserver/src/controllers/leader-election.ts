/**
 * Chooses one of several API servers of a cluster to run the controllers, by a Lease (client-go:
 * tools/leaderelection).
 *
 *     lease free or ended -> take it, start -> renew every 2 s -> not renewed for 10 s: stop
 *
 * Whether another one's lease has ended is measured with the own clock, from when its last renewal
 * was seen; clocks need not agree. Controllers are idempotent, so two that overlap do no harm.
 */

import type { Clock, Logger, Random, Timer } from "@quorate/host";
import { type KubeObject, microTime, textOf } from "@quorate/kube-storage";
import {
  isAlreadyExists,
  isConflict,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";

const LEASES: ResourceRef = { group: "coordination.k8s.io", version: "v1", resource: "leases" };
export const LEASE_NAMESPACE = "kube-system";
export const LEASE_NAME = "quorate-apiserver-controllers";
export const LEASE_DURATION_MS = 15_000;
export const RENEW_DEADLINE_MS = 10_000;
export const RETRY_PERIOD_MS = 2000;

export interface LeaderElectionDependencies {
  readonly client: LocalClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface LeaderCallbacks {
  started(): void;
  /** The lease may be another server's now. */
  stopped(): void;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export class LeaderElection {
  readonly #identity: string;
  readonly #callbacks: LeaderCallbacks;
  readonly #deps: LeaderElectionDependencies;
  #isLeader = false;
  #stopped = false;
  #timer: Timer | undefined;
  #deadline: Timer | undefined;
  /** The lease as last seen changed, and when. */
  #seen = "";
  #seenAtMs = 0;

  /** @param identity of this server, unlike that of any other one */
  constructor(identity: string, callbacks: LeaderCallbacks, deps: LeaderElectionDependencies) {
    this.#identity = identity;
    this.#callbacks = callbacks;
    this.#deps = deps;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  start(): void {
    void this.#attempt();
  }

  /** Stops, and frees the lease for the others if it can. */
  async stop(): Promise<void> {
    const wasLeader = this.#isLeader;
    this.#stopped = true;
    this.#timer?.cancel();
    this.#lose();
    if (!wasLeader) return;
    try {
      await this.#deps.client.update(LEASES, LEASE_NAMESPACE, LEASE_NAME, (lease) =>
        specOf(lease).holderIdentity === this.#identity ? this.#released(lease) : undefined,
      );
    } catch (error) {
      this.#warn(error);
    }
  }

  async #attempt(): Promise<void> {
    try {
      if (await this.#take()) this.#win();
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error)) this.#warn(error);
    }
    if (this.#stopped) return;
    const { clock, random } = this.#deps;
    const pauseMs = RETRY_PERIOD_MS * (1 + 0.2 * random.unit());
    this.#timer = clock.after(pauseMs, () => void this.#attempt());
  }

  /** Resolves with whether the lease is this server's. */
  async #take(): Promise<boolean> {
    const { client, clock } = this.#deps;
    const present = await client.get(LEASES, LEASE_NAMESPACE, LEASE_NAME);
    if (present === undefined) {
      await client.create(LEASES, LEASE_NAMESPACE, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: LEASE_NAME, namespace: LEASE_NAMESPACE },
        spec: this.#specNow({}),
      });
      return true;
    }
    const { resourceVersion = "" } = present.metadata;
    if (resourceVersion !== this.#seen) {
      this.#seen = resourceVersion;
      this.#seenAtMs = clock.monotonicMs();
    }
    const spec = specOf(present);
    const { holderIdentity = "", leaseDurationSeconds = 0 } = spec;
    const endsMs = this.#seenAtMs + leaseDurationSeconds * 1000;
    const isOthers = holderIdentity !== "" && holderIdentity !== this.#identity;
    if (isOthers && clock.monotonicMs() < endsMs) return false;
    const next = await client.update(LEASES, LEASE_NAMESPACE, LEASE_NAME, (it) =>
      it.metadata.resourceVersion === resourceVersion
        ? { ...it, spec: this.#specNow(spec) }
        : undefined,
    );
    this.#seen = next.metadata.resourceVersion ?? "";
    this.#seenAtMs = clock.monotonicMs();
    return specOf(next).holderIdentity === this.#identity;
  }

  #specNow(before: LeaseSpec): LeaseSpec {
    const now = microTime(this.#deps.clock.wallMs());
    const isOwn = before.holderIdentity === this.#identity;
    const { acquireTime = now, leaseTransitions = 0, holderIdentity } = before;
    return {
      holderIdentity: this.#identity,
      leaseDurationSeconds: LEASE_DURATION_MS / 1000,
      acquireTime: isOwn ? acquireTime : now,
      renewTime: now,
      leaseTransitions:
        isOwn || holderIdentity === undefined ? leaseTransitions : leaseTransitions + 1,
    };
  }

  #released(lease: KubeObject): KubeObject {
    const spec = { ...specOf(lease), holderIdentity: "", leaseDurationSeconds: 1 };
    return { ...lease, spec };
  }

  #win(): void {
    if (this.#stopped) return;
    this.#deadline?.cancel();
    this.#deadline = this.#deps.clock.after(RENEW_DEADLINE_MS, () => this.#lose());
    if (this.#isLeader) return;
    this.#isLeader = true;
    this.#deps.logger.info("this server runs the controllers", { identity: this.#identity });
    this.#callbacks.started();
  }

  #lose(): void {
    this.#deadline?.cancel();
    if (!this.#isLeader) return;
    this.#isLeader = false;
    this.#deps.logger.info("this server stops the controllers", { identity: this.#identity });
    this.#callbacks.stopped();
  }

  #warn(error: unknown): void {
    const text = textOf(error);
    this.#deps.logger.warn("the controllers' lease could not be read or written", { error: text });
  }
}

function specOf(lease: KubeObject): LeaseSpec {
  return (lease["spec"] ?? {}) as LeaseSpec;
}
