/** How many steps a turn of a simulated member takes. */
import type { MemberDeps } from "@quorate/member";
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
