/**
 * How much a member does at a time, and how much waits. The values are for real clusters; a
 * simulation draws its own, so that a few requests meet each bound. Its table of them has the same
 * type, so a new bound is drawn too.
 */
import { STORE_BOUNDS, type StoreBounds } from "@quorate/store";
import { LEASE_BOUNDS, type LeaseBounds } from "./lease/bounds.ts";
import { LOOP_BOUNDS, type LoopBounds, RAFT_BOUNDS, type RaftBounds } from "./loop/limits.ts";

export interface MemberBounds {
  readonly raft: RaftBounds;
  readonly loop: LoopBounds;
  readonly lease: LeaseBounds;
  readonly store: StoreBounds;
}

export const MEMBER_BOUNDS: MemberBounds = {
  raft: RAFT_BOUNDS,
  loop: LOOP_BOUNDS,
  lease: LEASE_BOUNDS,
  store: STORE_BOUNDS,
};
