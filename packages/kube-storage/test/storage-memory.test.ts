/** EtcdStore over a cluster in memory passes the contract of storages. */
import { fromUtf8 } from "@quorate/proto";
import { PrefixTransformer } from "../testing/contract/under-test.ts";
import { POD, PODS_PREFIX, podAttributes } from "../testing/example-pods.ts";
import { memoryStorage } from "../testing/memory-storage.ts";
import { storageContract } from "../testing/storage-contract.ts";

storageContract("EtcdStore in memory", {
  open: async () => {
    const transformer = new PrefixTransformer();
    const { storage, cluster } = memoryStorage({
      kind: POD,
      resourcePrefix: PODS_PREFIX,
      attributesOf: podAttributes,
      transformer,
    });
    return {
      storage,
      transformer,
      compact: async (revision) => cluster.compact(revision),
      increaseRevision: async () => {
        cluster.write(fromUtf8("/elsewhere"), fromUtf8("x"));
        return cluster.revision;
      },
      advance: (ms) => cluster.advance(ms),
      close: () => storage.close(),
    };
  },
});
