/**
 * What follows from an applied entry, besides its effect on the store: the caller who waits for it
 * gets its result, other parts of the member are notified of what concerns them, and what took long
 * or did not decode is logged and counted.
 */
import type { Logger } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import { type AppliedEntry, InvalidRequestError, type RequestKind } from "@quorate/store";
import type { Corruption } from "../corruption/index.ts";
import type { MalformedReport } from "../loop/malformed-report.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import { RequestMetrics } from "../metrics/request-metrics.ts";
import type { Publication } from "../publication.ts";
import type { Space } from "../space/index.ts";

export interface AppliedEntriesParts {
  readonly metrics: MemberMetrics;
  readonly logger: Logger;
  /** An entry that takes longer is logged. */
  readonly warningMs: number;
  readonly malformed: MalformedReport;
  readonly proposals: Proposals;
  readonly space: Space;
  readonly publication: Publication;
  readonly corruption: Corruption;
}

export class AppliedEntries {
  readonly #parts: AppliedEntriesParts;
  readonly #requestMetrics: RequestMetrics;

  constructor(parts: AppliedEntriesParts) {
    this.#parts = parts;
    this.#requestMetrics = new RequestMetrics(parts.metrics);
  }

  /** An entry's request was applied, which took from `startMs` to `nowMs`. */
  applied(entry: raftpb.Entry, applied: AppliedEntry, startMs: number, nowMs: number): void {
    const { requestId, kind, error } = applied;
    const tookMs = nowMs - startMs;
    this.#requestMetrics.applied(applied, tookMs);
    if (tookMs > this.#parts.warningMs) this.#tookLong(kind, tookMs);
    if (error instanceof InvalidRequestError) this.#parts.malformed(entry, error);
    if (error === undefined && kind !== undefined) this.#succeeded(kind);
    if (requestId === 0n) return;
    const proposedMs = this.#parts.proposals.settle(requestId, applied);
    if (proposedMs !== undefined) this.#requestMetrics.answered(applied, nowMs - proposedMs);
  }

  /** A request of this kind was applied without an error. */
  #succeeded(kind: RequestKind): void {
    const { space, publication, corruption } = this.#parts;
    if (kind === "compaction") space.compactionScheduled();
    else if (kind === "clusterVersionSet") publication.versionMayBeKnown();
    else if (kind === "alarm") {
      space.alarmsChanged();
      corruption.alarmsChanged();
    }
  }

  #tookLong(kind: RequestKind | undefined, tookMs: number): void {
    const { metrics, logger, warningMs } = this.#parts;
    metrics.slowApply.add(1);
    logger.warn("apply request took too long", {
      took: `${tookMs.toFixed(1)}ms`,
      "expected-duration": `${warningMs}ms`,
      request: kind ?? "",
    });
  }
}
