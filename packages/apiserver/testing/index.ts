/** Contract suites and fakes of the API server's interfaces. */
export * from "./example-pods.ts";
export { MemoryCluster } from "./memory-cluster.ts";
export { type MemoryStorageOptions, memoryStorage, testClock } from "./memory-storage.ts";
export {
  PrefixTransformer,
  type StorageContractOptions,
  type StorageUnderTest,
  storageContract,
} from "./storage-contract.ts";
export { WatchRecorder } from "./watch-recorder.ts";
