/**
 * Applies committed entries in order, in slices of a few milliseconds. What does not fit into a
 * slice waits for the next turn of the event loop, in which messages, proposals and reads come
 * first. An entry with much work may take many slices; nothing of it is seen before it is done, and
 * what is lost in a crash is replayed from the log.
 *
 *     committed -> | e7 | e8 | e9 | e10 |          slice 1: e7, a part of e8;  slice 2: the rest of
 *                                                  e8, e9, e10
 *
 * Bound: Raft hands out no more than `maxCommittedBytesPerReady` that is not applied yet.
 */
import type { Clock, Logger } from "@quorate/host";
import type { Histogram } from "@quorate/metrics";
import { type LeaseGrantResponse, raftpb } from "@quorate/proto";
import {
  type AppliedEntry,
  InvalidRequestError,
  isSteps,
  type RequestKind,
  type Steps,
} from "@quorate/store";
import type { Corruption } from "../corruption/index.ts";
import type { FaultHook } from "../loop/fault-points.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { Standstill } from "../loop/turns.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { MemberObserver } from "../observer.ts";
import type { Publication } from "../publication.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { Space } from "../space/index.ts";
import type { Configuration, MalformedReport } from "./configuration.ts";
import type { Flusher, LogMarks } from "./persistence.ts";

export interface ApplyLimits {
  /**
   * A slice ends after this long, at the next step: less than half of the 10 ms for which the loop
   * may be held.
   */
  readonly maxSliceMs: number;
  /** A slice ends after so many steps, whatever the time; for tests and simulations. */
  readonly maxSliceSteps: number;
  /** Keys that one step looks at, at most; the store's default unless set. */
  readonly stepKeys: number | undefined;
}

export const APPLY_LIMITS: ApplyLimits = {
  maxSliceMs: 4,
  maxSliceSteps: Number.POSITIVE_INFINITY,
  stepKeys: undefined,
};

export interface ApplierParts {
  readonly clock: Clock;
  readonly limits: ApplyLimits;
  readonly faults: FaultHook | undefined;
  readonly store: StoreRef;
  readonly proposals: Proposals;
  readonly standstill: Standstill;
  readonly configuration: Configuration;
  readonly applied: AppliedEntries;
  readonly space: Space;
  readonly marks: LogMarks;
  readonly flusher: Flusher;
}

export class Applier {
  readonly #parts: ApplierParts;
  #queue: raftpb.Entry[] = [];
  /** The place in the queue of the entry that is applied next, or is being applied. */
  #next = 0;
  /** What is left of the entry that is being applied, and when that began. */
  #steps: Steps<AppliedEntry> | undefined;
  #beganMs = 0;

  constructor(parts: ApplierParts) {
    this.#parts = parts;
  }

  /** Adds entries that follow those before. */
  push(entries: readonly raftpb.Entry[]): void {
    this.#queue = this.#queue.slice(this.#next).concat(entries);
    this.#next = 0;
  }

  /** True if `run` would have something to do. */
  get canRun(): boolean {
    if (this.#steps !== undefined) return true;
    const { standstill, store } = this.#parts;
    return this.#next < this.#queue.length && !standstill.holdsEntries && !store.current.isFull;
  }

  /** True if the time of a slice that began at `startMs` is used up. */
  isSliceOver(startMs: number): boolean {
    return this.#parts.clock.monotonicMs() - startMs >= this.#parts.limits.maxSliceMs;
  }

  /** Gives up everything that is not applied, when a received store takes the place of this one. */
  clear(): void {
    this.#queue = [];
    this.#next = 0;
    this.#setSteps(undefined);
  }

  #setSteps(steps: Steps<AppliedEntry> | undefined): void {
    this.#steps = steps;
    this.#parts.standstill.isInEntry = steps !== undefined;
  }

  /**
   * Applies entries until there are none, or until the slice that began at `startMs` is over.
   * Returns the index of the last that was applied; undefined: none was.
   */
  run(startMs: number): number | undefined {
    const { clock, limits } = this.#parts;
    const resumedMs = clock.monotonicMs();
    let bytes = 0;
    let index: number | undefined;
    let nowMs = startMs;
    while (this.canRun) {
      const entry = this.#queue[this.#next];
      if (entry === undefined) break;
      const doneMs = this.#advance(entry, startMs, nowMs);
      if (doneMs === undefined) {
        this.#parts.faults?.("between-apply-slices");
        break;
      }
      nowMs = doneMs;
      this.#next++;
      index = entry.index;
      bytes += entry.data.length;
      if (nowMs - startMs >= limits.maxSliceMs || limits.maxSliceSteps < Number.POSITIVE_INFINITY)
        break;
    }
    // Applying has its share whole, as all others wait for it; they see what it took.
    clock.turns.spent(clock.monotonicMs() - resumedMs);
    if (index !== undefined) this.#sliceEnded(index, bytes);
    return index;
  }

  /** Entries were applied in a slice, up to `index`, with `bytes` of data. */
  #sliceEnded(index: number, bytes: number): void {
    const { space, marks, store, flusher } = this.#parts;
    space.keeper.applied();
    marks.applied(index, bytes);
    if (store.current.isFlushDue) flusher.flush();
  }

  /**
   * Applies an entry, or goes on with it. Returns when it was done; undefined if the slice is over
   * before that.
   */
  #advance(entry: raftpb.Entry, startMs: number, nowMs: number): number | undefined {
    const { clock, configuration, store, proposals } = this.#parts;
    let left = this.#steps;
    if (left === undefined) {
      if (entry.type !== raftpb.EntryType.EntryNormal) {
        configuration.apply(entry);
        return clock.monotonicMs();
      }
      this.#beganMs = nowMs;
      const outcome = store.current.begin(entry, proposals);
      if (!isSteps(outcome)) return this.#finished(entry, outcome);
      left = outcome;
      this.#setSteps(left);
    }
    const { maxSliceMs, maxSliceSteps } = this.#parts.limits;
    for (let steps = 0; ; steps++) {
      if (steps >= maxSliceSteps || (steps > 0 && clock.monotonicMs() - startMs >= maxSliceMs))
        return undefined;
      const step = left.next();
      if (step.done !== true) continue;
      this.#setSteps(undefined);
      return this.#finished(entry, step.value);
    }
  }

  #finished(entry: raftpb.Entry, applied: AppliedEntry): number {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#parts.applied.applied(entry, applied, this.#beganMs, nowMs);
    return nowMs;
  }
}

interface AppliedEntriesParts {
  readonly metrics: MemberMetrics;
  readonly logger: Logger;
  /** An entry that takes longer is logged. */
  readonly warningMs: number;
  readonly malformed: MalformedReport;
  readonly proposals: Proposals;
  readonly space: Space;
  readonly publication: Publication;
  readonly corruption: Corruption;
  readonly store: StoreRef;
  readonly observer: MemberObserver | undefined;
}

/**
 * What follows from an applied entry, besides its effect on the store: the caller who waits for it
 * gets its result, other parts of the member are notified of what concerns them, and what took long
 * or did not decode is logged and counted.
 */
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
    const { observer, store } = this.#parts;
    const tookMs = nowMs - startMs;
    observer?.entryApplied?.(entry, applied, store.current);
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

/** The histograms of one kind. */
interface KindHistograms {
  readonly applied: readonly [failed: Histogram, succeeded: Histogram];
  readonly answered: Histogram;
}

/**
 * Results and durations of requests, under etcd's names for their kinds. The look-up is its own:
 * this is on the way of every request.
 */
class RequestMetrics {
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
