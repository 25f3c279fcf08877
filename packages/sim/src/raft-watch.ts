/** The checks that watch the Raft of one process. */
import type { Raft } from "@quorate/raft";
import type { SimOptions } from "./base/options.ts";
import type { Process } from "./base/scheduler.ts";
import { watchPatience } from "./check/first-election.ts";
import type { RaftCheck } from "./check/raft.ts";
import type { Safety } from "./check/safety.ts";

export interface RaftWatchDeps {
  readonly options: SimOptions;
  readonly safety: Safety;
  readonly raftCheck: RaftCheck;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
  /** Runs a check whose violation is reported to the simulator. */
  look(check: () => void): void;
}

/** Watches `raft` of the member `name` until its process ends. */
export function watchRaft(
  name: string,
  raft: Raft,
  process: Process,
  { options, safety, raftCheck, fail, look }: RaftWatchDeps,
): void {
  raftCheck.watch(name, raft, fail);
  if (options.electionAdvance) {
    const electionTicks = Math.floor(options.electionMs / options.heartbeatMs);
    watchPatience(name, raft, electionTicks, fail);
  }
  safety.promotions.watch(name, raft, fail);
  // Where the log may hold little, that bound goes first.
  if (!options.smallBounds) safety.keptLog.watch(name, raft, options.drift, fail);
  look(() => safety.acknowledged.started(name, raft));
  process.onEnd(() => {
    raftCheck.forget(name);
    safety.acknowledged.ended(raft);
    safety.promotions.forget(raft);
    safety.keptLog.forget(name);
  });
}
