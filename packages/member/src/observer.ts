/** What the owner of a member is told. */
import type { raftpb } from "@quorate/proto";
import type { Alarms, AppliedEntry, Store } from "@quorate/store";

/** Is told of changes, within the turn that brings them; must not throw. */
export interface MemberObserver {
  /** @param leader the id of the leader; 0n where none is known */
  leaderChanged(leader: bigint): void;
  /** Alarms were raised or ended, or those of another store count from now on. */
  alarmsChanged(alarms: Alarms): void;
  /** A request of the log was applied, or refused, by the store. */
  entryApplied?(entry: raftpb.Entry, applied: AppliedEntry, store: Store): void;
}
