/** The check of a log that was read from disk. */
import type { InitialState } from "./config.ts";
import { isConfChange } from "./entries.ts";
import { violated } from "./invariants.ts";

/**
 * The index up to which the log is known to be committed. Throws RAFT-1 if the state is incoherent.
 */
export function checkedCommit(initial: InitialState): number {
  const { snapshot, hardState, applied } = initial;
  let index = snapshot.index;
  let term = snapshot.term;
  let lastConfChange = 0;
  let provenCommit = Math.max(hardState.commit, applied);
  for (const entry of initial.entries) {
    if (entry.index !== index + 1 || entry.term < term) {
      violated(
        "RAFT-1",
        `entry ${entry.index} of term ${entry.term} follows ${index} of term ${term}`,
      );
    }
    index = entry.index;
    term = entry.term;
    if (!isConfChange(entry)) continue;
    // A configuration change is proposed only after the previous one is applied, so each proves
    // that the one before is committed. The hard state with that commit index may be lost, for it
    // is written after the entries. Without this, the member could campaign with a configuration
    // that is two changes old, whose majorities need not overlap with the current one's.
    provenCommit = Math.max(provenCommit, lastConfChange);
    lastConfChange = index;
  }
  if (applied < snapshot.index || applied > index)
    violated("RAFT-1", `applied ${applied}, log ${snapshot.index} to ${index}`);
  if (hardState.commit > index)
    violated("RAFT-1", `commit ${hardState.commit}, last entry ${index}`);
  return provenCommit;
}
