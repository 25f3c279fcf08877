/**
 * Named places between the steps of a member's loop where a test or the simulator can stop the
 * member. In production nothing listens.
 */
export const FAULT_POINTS = [
  "before-wal-append",
  "after-wal-append",
  "after-wal-sync",
  "before-send",
  "before-apply",
  "between-apply-slices",
  "after-apply",
  "before-backend-flush",
  "after-backend-flush",
  "before-snapshot-mark",
  "after-snapshot-mark",
  "before-snapshot-save",
  "before-snapshot-install",
  "after-snapshot-install",
  "before-log-release",
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

/** Called when a member passes a fault point. A throw stops the member there, as a crash would. */
export type FaultHook = (point: FaultPoint) => void;
