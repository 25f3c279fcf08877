/**
 * Whole clusters in one thread, from a seed, on a simulated clock, network and disk; and the
 * checkers that judge them.
 */
export { decodeAnswer, encodeRequest, toModelKv } from "./src/base/codec.ts";
export { FAULT_KINDS } from "./src/base/fault-kinds.ts";
export {
  type Answer,
  type ModelCompare,
  type ModelOp,
  type ModelRequest,
  ModelState,
} from "./src/base/model.ts";
export {
  type CompactionCall,
  changesKeys,
  type Operation,
  type Outcome,
  REFUSALS,
} from "./src/base/operation.ts";
export { optionsOf } from "./src/base/options.ts";
export { Process, ProcessClock } from "./src/base/scheduler.ts";
export { Violation } from "./src/base/violation.ts";
export { checkHistory } from "./src/check/by-revision.ts";
export { judgeHistory } from "./src/check/judge.ts";
export { checkLeases, type LeaseRecord } from "./src/check/leases.ts";
export { checkLinearizable } from "./src/check/linearizable.ts";
export {
  checkWatchStreams,
  eventsBetween,
  replay,
  type WatchBatch,
  type WatchEvent,
  type WatchStream,
} from "./src/check/watch-streams.ts";
export type { GuestDeps, Guests } from "./src/guests.ts";
export { HUNTED_BUGS, SOURCE_BUGS } from "./src/planted/catalogue.ts";
export type { CatalogueBug } from "./src/planted/source-edit.ts";
export { editOf, fileOf } from "./src/planted/source-edit.ts";
export { searchClusters } from "./src/raft/run-seed.ts";
export { historyPicture } from "./src/report/picture.ts";
export type { RunResult } from "./src/result.ts";
export { runPool, seedsFrom } from "./src/run/pool.ts";
export { Totals } from "./src/run/totals.ts";
export { runSeed } from "./src/run-seed.ts";
