/** Consensus: a state machine and nothing else. step(message) and tick() in, one Ready out. */
export { MAX_TERM_LEAP } from "./src/check.ts";
export { confStateAfter } from "./src/confchange.ts";
export {
  type InitialState,
  type LogLevel,
  MAX_INDEX,
  MAX_TERM,
  type RaftConfig,
  RaftConfigError,
  type RaftLogger,
} from "./src/config.ts";
export {
  bootstrapEntries,
  confChangeOf,
  ENTRY_OVERHEAD_BYTES,
  isConfChange,
  toConfChangeV2,
} from "./src/entries.ts";
export { type InvariantNumber, invariants } from "./src/invariants.ts";
export { messageName } from "./src/message.ts";
export { Raft } from "./src/raft.ts";
export type { ReadState, Ready, Role, SoftState } from "./src/ready.ts";
export type {
  ConfChangeResult,
  ProgressState,
  ProgressStatus,
  ProposeResult,
  ReadIndexResult,
  Status,
  TransferResult,
} from "./src/status.ts";
