/** Results and durations of requests, under etcd's names for their kinds. */

import type { Histogram } from "@quorate/metrics";
import type { LeaseGrantResponse } from "@quorate/proto";
import type { AppliedEntry, RequestKind } from "@quorate/store";
import type { MemberMetrics } from "./member-metrics.ts";

/** The histograms of one kind. */
interface KindHistograms {
  readonly applied: readonly [failed: Histogram, succeeded: Histogram];
  readonly answered: Histogram;
}

/** Observes with a look-up of its own: this is on the way of every request. */
export class RequestMetrics {
  readonly #metrics: MemberMetrics;
  readonly #byKind = new Map<RequestKind, KindHistograms>();

  constructor(metrics: MemberMetrics) {
    this.#metrics = metrics;
  }

  /** A request was applied on this member. */
  applied({ kind, error, response }: AppliedEntry, durationMs: number): void {
    if (kind === undefined) return;
    // As in etcd, that a compaction came late is no failure.
    this.#of(kind).applied[error === undefined || error.code === "Compacted" ? 1 : 0].observe(
      durationMs / 1000,
    );
    if (error !== undefined) return;
    if (kind === "leaseGrant") {
      this.#metrics.leasesGranted.add();
      this.#metrics.leaseTtls.observe((response as LeaseGrantResponse).TTL);
    } else if (kind === "leaseRevoke") this.#metrics.leasesRevoked.add();
  }

  /** A request that was proposed here has its result, be it an error of the store. */
  answered({ kind }: AppliedEntry, durationMs: number): void {
    if (kind !== undefined) this.#of(kind).answered.observe(durationMs / 1000);
  }

  #of(kind: RequestKind): KindHistograms {
    const known = this.#byKind.get(kind);
    if (known !== undefined) return known;
    const { applyDuration, requestDuration } = this.#metrics;
    const name = kind.charAt(0).toUpperCase() + kind.slice(1);
    const made: KindHistograms = {
      applied: [applyDuration.with("v3", name, "false"), applyDuration.with("v3", name, "true")],
      answered: requestDuration.with(name, "true"),
    };
    this.#byKind.set(kind, made);
    return made;
  }
}
