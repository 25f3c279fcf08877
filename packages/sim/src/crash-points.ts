/** The points that a member's process comes by, and at which it is made to crash. */
import type { FaultPoint } from "@quorate/member/testing";

/** A fault point, or the writing of a snapshot that comes in. */
export type CrashPoint = FaultPoint | "receiving";

/** Points around a snapshot that a leader sends. */
export const INSTALL_POINTS: readonly CrashPoint[] = [
  "receiving",
  "before-snapshot-save",
  "before-snapshot-install",
  "after-snapshot-install",
];

export interface CrashPlan {
  readonly point: CrashPoint;
  /** It crashes when it comes by there for this time. */
  passes: number;
  /** It goes on for so many operations of its disk. */
  readonly operations: number;
}

/** Thrown where a process crashes: it is gone. */
export class Crash extends Error {}

export class CrashPoints {
  /** Where it crashes next; this outlives the process. */
  plan: CrashPlan | undefined;
  /** How often each point was passed, and how often it was the end. */
  readonly passes = new Map<CrashPoint, { passed: number; crashed: number }>();

  /**
   * The process comes by. Returns the plan if it is to crash by it; there is no plan any more then.
   */
  pass(point: CrashPoint): CrashPlan | undefined {
    let count = this.passes.get(point);
    if (count === undefined) this.passes.set(point, (count = { passed: 0, crashed: 0 }));
    count.passed++;
    const { plan } = this;
    if (plan?.point !== point || --plan.passes > 0) return undefined;
    this.plan = undefined;
    count.crashed++;
    return plan;
  }
}
