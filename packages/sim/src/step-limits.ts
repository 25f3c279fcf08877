/** How many steps a turn of a simulated member takes, and how much memory it plans with. */
import { type MemberDeps, WATCH_LIMITS } from "@quorate/member";
import { SLICE_LIMITS } from "@quorate/member/testing";
import type { SimOptions } from "./base/options.ts";

/** Entries are applied, and ranges read, key by key, so that small ones take many slices too. */
const EVERY_STEP = { maxSliceMs: Number.POSITIVE_INFINITY, stepKeys: 1 };

/** Of applying entries; undefined: as in the product. */
export function applyLimitsOf({ applySteps, readSteps }: SimOptions): MemberDeps["applyLimits"] {
  if (applySteps === 0 && readSteps === 0) return undefined;
  return { ...EVERY_STEP, maxSliceSteps: applySteps === 0 ? Number.POSITIVE_INFINITY : applySteps };
}

/** Of reading ranges; undefined: as in the product. */
export function sliceLimitsOf({ readSteps }: SimOptions): MemberDeps["sliceLimits"] {
  return readSteps === 0
    ? undefined
    : { ...SLICE_LIMITS, turnSteps: readSteps, quantumSteps: 1, mostSmallKeys: 0 };
}

/** What a few requests of the simulator's clients reach. */
const SMALL_LOG: MemberDeps["logMemory"] = {
  maxQueuedBytes: 64_000,
  maxUncommittedBytes: 2000,
  maxLogBytes: 20_000,
  maxCatchUpBytes: 4000,
};

const SMALL_WATCHES: MemberDeps["watchLimits"] = {
  ...WATCH_LIMITS,
  maxStreamBacklogBytes: 2000,
  maxTotalBacklogBytes: 8000,
  maxResponseRevisions: 3,
  maxResponseBytes: 1000,
  maxRecentEvents: 8,
  maxRecentBytes: 4000,
  maxSliceEvents: 4,
};

/** Bounds in bytes; those that are undefined are as in a machine with much memory. */
export function memoryLimitsOf({
  smallBounds,
}: SimOptions): Pick<MemberDeps, "logMemory" | "watchLimits"> {
  return smallBounds ? { logMemory: SMALL_LOG, watchLimits: SMALL_WATCHES } : {};
}
