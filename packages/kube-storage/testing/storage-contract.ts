/**
 * What every StorageInterface does, as tests: Kubernetes' own conformance functions
 * (apiserver: pkg/storage/testing) in the terms of this repository. EtcdStore passes it over a fake
 * cluster, a member and etcd; Cacher passes it over EtcdStore.
 */
import { listCases } from "./contract/lists.ts";
import { casesOf, type StorageContractOptions } from "./contract/under-test.ts";
import { updateCases } from "./contract/updates.ts";
import { watchCases } from "./contract/watches.ts";
import { writeCases } from "./contract/writes.ts";

export {
  PrefixTransformer,
  type StorageContractOptions,
  type StorageUnderTest,
} from "./contract/under-test.ts";

/** Declares the tests. @param name of the implementation, before each test's own */
export function storageContract(name: string, options: StorageContractOptions): void {
  const add = casesOf(name, options);
  writeCases(add, options);
  updateCases(add, options);
  listCases(add, options);
  watchCases(add, options);
}
