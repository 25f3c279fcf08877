/**
 * Whole clusters in one thread, from a seed, on a simulated clock, network and disk; and the
 * checkers that judge them.
 */
export { decodeAnswer, encodeRequest, type ReadMode, toModelKv } from "./src/base/codec.ts";
export { FAULT_KINDS, type FaultKind } from "./src/base/fault-kinds.ts";
export {
  type Answer,
  type ModelCompare,
  type ModelKey,
  type ModelOp,
  type ModelRequest,
  ModelState,
  type OpAnswer,
} from "./src/base/model.ts";
export { difference } from "./src/base/model-difference.ts";
export {
  type CompactionCall,
  changesKeys,
  type Operation,
  type Outcome,
  REFUSALS,
} from "./src/base/operation.ts";
export { type Changes, optionsOf, type SimOptions } from "./src/base/options.ts";
export { Process, ProcessClock } from "./src/base/scheduler.ts";
export { Violation } from "./src/base/violation.ts";
export { checkHistory, type Verdict } from "./src/check/by-revision.ts";
export {
  formatHistory,
  type Judgement,
  type JudgeOptions,
  judgeHistory,
  parseHistory,
  type RecordedHistory,
} from "./src/check/judge.ts";
export { checkLeases, type LeaseDemand, type LeaseRecord } from "./src/check/leases.ts";
export {
  checkLinearizable,
  type Linearizability,
  type LinearizabilityOptions,
  MAX_SEARCH_STATES,
} from "./src/check/linearizable.ts";
export { Safety } from "./src/check/safety.ts";
export { MAX_SHRINK_RUNS, shrinkHistory } from "./src/check/shrink.ts";
export {
  checkWatchStreams,
  type EventLog,
  eventsBetween,
  type Replayed,
  replay,
  type WatchBatch,
  type WatchEvent,
  type WatchStream,
} from "./src/check/watch-streams.ts";
export type { GuestDeps, GuestFactory, Guests } from "./src/guests.ts";
export { HUNTED_BUGS, SOURCE_BUGS } from "./src/planted/catalogue.ts";
export type { CatalogueBug } from "./src/planted/source-edit.ts";
export { editOf, fileOf } from "./src/planted/source-edit.ts";
export { searchClusters } from "./src/raft/run-seed.ts";
export { historyPicture } from "./src/report/picture.ts";
export type { RunResult } from "./src/result.ts";
export { commandOf } from "./src/run/changes.ts";
export { type PoolOptions, runPool, seedsFrom } from "./src/run/pool.ts";
export { shrinkSeed } from "./src/run/shrink.ts";
export { Totals } from "./src/run/totals.ts";
export { runSeed } from "./src/run-seed.ts";
