/** A Cacher over EtcdStore, over a fake cluster, passes the contract of all storages. */
import { type Clock, SeededRandom, silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { fromUtf8 } from "@quorate/proto";
import { Cacher } from "../../src/cacher/cacher.ts";
import { PrefixTransformer } from "../../testing/contract/under-test.ts";
import { POD, PODS_PREFIX, podAttributes } from "../../testing/example-pods.ts";
import { memoryStorage } from "../../testing/memory-storage.ts";
import { storageContract } from "../../testing/storage-contract.ts";

/** Timers run twenty times as fast: what times out does so after 150 ms. */
const clock: Clock = {
  turns: nodeClock.turns,
  wallMs: () => nodeClock.wallMs(),
  monotonicMs: () => nodeClock.monotonicMs(),
  after: (ms, task) => nodeClock.after(ms / 20, task),
  every: (ms, task) => nodeClock.every(ms / 20, task),
  endOfTurn: (task) => nodeClock.endOfTurn(task),
};

storageContract("Cacher", {
  isCache: true,
  open: async () => {
    const transformer = new PrefixTransformer();
    const { storage, cluster } = memoryStorage({
      kind: POD,
      resourcePrefix: PODS_PREFIX,
      attributesOf: podAttributes,
      transformer,
    });
    const cacher = new Cacher(
      {
        kind: POD,
        resource: { group: "example.test", resource: "pods" },
        resourcePrefix: PODS_PREFIX,
        attributesOf: podAttributes,
        indexFields: ["spec.nodeName"],
      },
      { storage, clock, random: new SeededRandom(1n), logger: silentLogger },
    );
    return {
      storage: cacher,
      transformer,
      compact: async (revision) => {
        cluster.compact(revision);
        Object.assign(storage, { compactRevision: () => cluster.compactRevision });
      },
      increaseRevision: async () => {
        cluster.write(fromUtf8("/elsewhere"), fromUtf8("x"));
        return cluster.revision;
      },
      advance: (ms) => cluster.advance(ms),
      close: async () => {
        await cacher.close();
        await storage.close();
      },
    };
  },
});
