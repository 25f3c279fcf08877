/** Contract suites and fakes of the API server's interfaces. */
export { PrefixTransformer, type StorageUnderTest } from "./contract/under-test.ts";
export * from "./example-pods.ts";
export { MemoryCluster } from "./memory-cluster.ts";
export { memoryStorage, testClock } from "./memory-storage.ts";
export { storageContract } from "./storage-contract.ts";
export { WatchRecorder } from "./watch-recorder.ts";
