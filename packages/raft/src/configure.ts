/** Puts configurations into effect. */
import { idToHex, type raftpb } from "@quorate/proto";
import { confStateAfter } from "./confchange.ts";
import type { Core } from "./core.ts";
import { advanceReads } from "./read.ts";
import { advanceCommit } from "./replicate.ts";
import { becomeFollower } from "./roles.ts";

/** Applies a committed change. */
export function applyChange(core: Core, change: raftpb.ConfChangeV2): void {
  putInForce(core, confStateAfter(core.tracker.conf, change));
}

/** Puts the configurations of installed snapshots into effect. */
export function restoreConfs(core: Core): void {
  while (core.restoredConfs.length > 0 && core.restoredConfs[0].index <= core.log.applied)
    putInForce(core, core.restoredConfs.shift()!.conf);
}

/** Puts a configuration into effect; a leader then sends to, and counts, the new members. */
function putInForce(core: Core, conf: raftpb.ConfState): void {
  core.tracker.configure(conf, core.log.lastIndex);
  core.note("info", "switched configuration", {
    voters: conf.voters.map(idToHex),
    votersOutgoing: conf.votersOutgoing.map(idToHex),
    learners: conf.learners.map(idToHex),
  });
  if (!core.isLeader) return;
  const self = core.self;
  if (self === undefined || self.isLearner) {
    core.note("warn", "leads no more: removed or demoted");
    becomeFollower(core, core.term, 0n);
    return;
  }
  // The new quorum may be smaller: entries may be committed and reads confirmed by it.
  advanceCommit(core);
  advanceReads(core);
  if (core.leadTransferee !== 0n && !core.tracker.isVoter(core.leadTransferee))
    core.leadTransferee = 0n;
}
