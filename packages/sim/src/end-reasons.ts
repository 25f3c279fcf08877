/**
 * Why a member's process ended by itself, and whether anything that was done to it explains that.
 */
import { BootstrapError } from "@quorate/member/testing";
import type { DiskFaults } from "./disk-faults.ts";

/** What is known of a member that ended. */
export interface Ended {
  /** What it ended with; undefined for an end in order. */
  readonly error: unknown;
  /** Its removal from the cluster was applied somewhere. */
  readonly isRemoved: boolean;
  /** It is one that joins a cluster which exists. */
  readonly joins: boolean;
  /** Some member's store was made to differ. */
  readonly isAnyAltered: boolean;
  readonly faults: DiskFaults;
}

/**
 * removed: it is no member any more. not-joined: it could not reach a member, or the membership has
 * changed since it was configured to join. difference: it differs from others, or others from it,
 * and must compare itself before it takes part. damage: its disk went bad, and so it refuses.
 * fault: an operation that was made to fail. unexplained: a violation of SIM-9.
 */
export type Ending = "removed" | "not-joined" | "difference" | "damage" | "fault" | "unexplained";

/** Returns which it is. */
export function endingOf({ error, isRemoved, joins, isAnyAltered, faults }: Ended): Ending {
  // An end without an error is that of a member which was removed, and so is a start that is
  // refused for it.
  if (isRemoved && (error === undefined || error instanceof BootstrapError)) return "removed";
  const isJoinError = joins && error instanceof Error && error.name === "JoinError";
  if (isJoinError && !error.message.includes("started before")) return "not-joined";
  if (
    isAnyAltered &&
    error instanceof Error &&
    error.message.endsWith("found data inconsistency with peers")
  )
    return "difference";
  // The store is ahead of a log whose syncs lied.
  const isBehind = error instanceof BootstrapError && error.message.includes("has lost entries");
  if (isBehind && faults.hasLied) return "damage";
  return faults.reasonOf(error) ?? "unexplained";
}
