/** The open watches: bounded for each user and in all, and ended when the server stops. */

import type { ServedResource } from "@quorate/kube-storage";
import type { Call } from "../handlers/call.ts";
import type { OpenWatches } from "../handlers/resource-call.ts";
import { overloaded } from "../handlers/statuses.ts";
import type { ApiMetrics } from "./api-metrics.ts";

/** Watches of one user, and of all; each takes some kilobytes. */
export const MAX_WATCHES_PER_USER = 10_000;
export const MAX_WATCHES = 50_000;
const RETRY_AFTER_SECONDS = 5;

export interface WatchLimits {
  readonly perUser: number;
  readonly total: number;
}

export class WatchTable implements OpenWatches {
  readonly #metrics: ApiMetrics;
  readonly #limits: WatchLimits;
  readonly #byUser = new Map<string, number>();
  readonly #ends = new Set<() => void>();

  constructor(
    metrics: ApiMetrics,
    limits: WatchLimits = { perUser: MAX_WATCHES_PER_USER, total: MAX_WATCHES },
  ) {
    this.#metrics = metrics;
    this.#limits = limits;
  }

  get count(): number {
    return this.#ends.size;
  }

  open(call: Call, _resource: ServedResource, end: () => void): () => void {
    const { name } = call.user;
    const own = this.#byUser.get(name) ?? 0;
    if (own >= this.#limits.perUser || this.#ends.size >= this.#limits.total)
      throw overloaded(RETRY_AFTER_SECONDS);
    this.#byUser.set(name, own + 1);
    this.#ends.add(end);
    const ended = this.#metrics.watchBegan(call);
    return () => {
      if (!this.#ends.delete(end)) return;
      ended();
      const left = this.#byUser.get(name)! - 1;
      if (left === 0) this.#byUser.delete(name);
      else this.#byUser.set(name, left);
    };
  }

  sent({ group, version, resource }: ServedResource, sizeBytes: number): void {
    this.#metrics.watchEvent(group, version, resource, sizeBytes);
  }

  /** Ends all watches; their clients go on at another server, or when this one is back. */
  endAll(): void {
    for (const end of [...this.#ends]) end();
  }
}
