/** Storage without a cluster: EtcdStore over a MemoryCluster. */
import { type Clock, type TurnClock, Turns } from "@quorate/host";
import { jsonCodec } from "../src/codec/json-codec.ts";
import type { GroupVersionKind } from "../src/meta/kinds.ts";
import type { AttributesOf } from "../src/meta/selectors.ts";
import type { ObjectCodec, ValueTransformer } from "../src/storage/codec.ts";
import { EtcdStore } from "../src/storage/etcd-store.ts";
import { identityTransformer } from "../src/storage/etcd-values.ts";
import { LeaseManager } from "../src/storage/lease-manager.ts";
import { MemoryCluster } from "./memory-cluster.ts";

export interface MemoryStorageOptions {
  readonly kind: GroupVersionKind;
  /** Such as "/configmaps". */
  readonly resourcePrefix: string;
  /** Default: metadata.name, metadata.namespace and the labels. */
  readonly attributesOf?: AttributesOf;
  /** Default: JSON. */
  readonly codec?: ObjectCodec;
  readonly transformer?: ValueTransformer;
  /** Default: its own. */
  readonly cluster?: MemoryCluster;
  readonly clock?: TurnClock;
}

const metadataAttributes: AttributesOf = ({ metadata }) => ({
  labels: metadata.labels ?? {},
  fields: {
    "metadata.name": metadata.name ?? "",
    "metadata.namespace": metadata.namespace ?? "",
  },
});

const processTurns: TurnClock = {
  monotonicMs: () => performance.now(),
  endOfTurn: (task) => void setImmediate(task),
};

/** The process's clock, as far as storages need one. */
export const testClock: TurnClock & Pick<Clock, "turns"> = {
  ...processTurns,
  turns: new Turns(processTurns),
};

/** A storage whose objects live in memory. `cluster` has its failures and its time. */
export function memoryStorage(options: MemoryStorageOptions): {
  readonly storage: EtcdStore;
  readonly cluster: MemoryCluster;
} {
  const cluster = options.cluster ?? new MemoryCluster();
  const clock = options.clock ?? testClock;
  const storage = new EtcdStore(
    { kind: options.kind, root: "/registry", resourcePrefix: options.resourcePrefix },
    {
      client: cluster,
      codec: options.codec ?? jsonCodec,
      transformer: options.transformer ?? identityTransformer,
      attributesOf: options.attributesOf ?? metadataAttributes,
      leases: new LeaseManager(
        (ttl) => cluster.grantLease(ttl),
        () => clock.monotonicMs(),
      ),
      clock: { turns: new Turns(clock), endOfTurn: (task) => clock.endOfTurn(task) },
    },
  );
  return { storage, cluster };
}
