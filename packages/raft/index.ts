/** Consensus: a state machine and nothing else. step(message) and tick() in, one Ready out. */
export { confStateAfter } from "./src/confchange.ts";
export {
  type InitialState,
  MAX_INDEX,
  MAX_TERM,
  type ProgressState,
  type ProgressStatus,
  type RaftConfig,
  RaftConfigError,
  type Ready,
  type Role,
  type Status,
  type TransferResult,
} from "./src/interface.ts";
export { type InvariantNumber, invariants } from "./src/invariants.ts";
export { bootstrapEntries, confChangeOf, isConfChange, toConfChangeV2 } from "./src/log.ts";
export { MAX_TERM_LEAP, messageName } from "./src/message.ts";
export { Raft } from "./src/raft.ts";
