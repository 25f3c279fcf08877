/**
 * In-memory fakes for tests and the simulator, and the contract suites of the platform interfaces.
 */

export { MemoryDisk } from "../node/memory/disk.ts";
export { SECTOR_BYTES } from "../node/memory/file.ts";
export { MemoryKeyspaceOpener } from "../node/memory/keyspace.ts";
export { clockContract } from "./clock-contract.ts";
export { diskContract, rejectsWithDiskError, throwsDiskError } from "./disk-contract.ts";
export { growthOf } from "./growth.ts";
export {
  type ClientRequest,
  type ExchangesUnderTest,
  httpExchangeContract,
} from "./http-exchange-contract.ts";
export { keyspaceContract } from "./keyspace-contract.ts";
export { ManualClock } from "./manual-clock.ts";
export { MemoryExchange } from "./memory-exchange.ts";
export { randomContract } from "./random-contract.ts";
export { edited, plantEdit, type SourceEdit } from "./source-hook.ts";
export { leaveStaleSocket } from "./stale-socket.ts";
