/**
 * The storages of all resources of a server: for each a Cacher over an EtcdStore (apiserver:
 * generic/registry StorageWithCacher, where CacherStorage wraps UnderlyingStorage).
 *
 *     registry Store -> Cacher -> EtcdStore -> ClusterClient -> cluster
 */
import type { Clock, Logger, Random } from "@quorate/host";
import type {
  ClusterClient,
  MetricSample,
  ResourceSpec,
  StorageFactory,
  StorageInterface,
  ValueTransformer,
} from "@quorate/kube-storage";
import {
  attributesOf,
  Cacher,
  Compactor,
  DecodedObjects,
  EtcdStore,
  KeyRevisions,
  LeaseManager,
} from "@quorate/kube-storage";

export interface ResourceStoragesOptions {
  /** Before all keys: "/registry" (rootOf of --etcd-prefix). */
  readonly root: string;
  /** --watch-cache: without it, reads and watches go to the cluster. */
  readonly isCached: boolean;
  /** --etcd-compaction-interval; 0: another server compacts. */
  readonly compactionIntervalMs: number;
}

export interface ResourceStoragesDeps {
  readonly cluster: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Of a resource's values at rest. */
  transformerOf(spec: ResourceSpec): ValueTransformer;
}

interface Opened {
  readonly spec: ResourceSpec;
  readonly storage: StorageInterface;
  close(): Promise<void>;
}

export class ResourceStorages implements StorageFactory {
  readonly #options: ResourceStoragesOptions;
  readonly #deps: ResourceStoragesDeps;
  readonly #leases: LeaseManager;
  readonly #decoded = new DecodedObjects();
  readonly #revisions: KeyRevisions;
  readonly #compactor: Compactor;
  readonly #opened = new Set<Opened>();

  constructor(options: ResourceStoragesOptions, deps: ResourceStoragesDeps) {
    this.#options = options;
    this.#deps = deps;
    const { cluster: client, clock, logger } = deps;
    this.#compactor = new Compactor(options.compactionIntervalMs, { client, clock, logger });
    this.#revisions = new KeyRevisions(client, clock);
    this.#leases = new LeaseManager(
      (ttlSeconds) => deps.cluster.grantLease(ttlSeconds),
      () => deps.clock.monotonicMs(),
    );
  }

  /**
   * Opens a storage, whose cache begins to fill; `release` closes it. Resources with the same
   * prefix, such as the events of both groups, share one.
   */
  storageFor(spec: ResourceSpec): StorageInterface {
    for (const { spec: other, storage } of spec.ownStorage === true ? [] : this.#opened)
      if (other.storagePrefix === spec.storagePrefix) return storage;
    const { cluster, clock, random, logger, transformerOf } = this.#deps;
    const { kind, resource, storagePrefix } = spec;
    const resourcePrefix = `/${storagePrefix}`;
    const underlying = new EtcdStore(
      { kind, root: this.#options.root, resourcePrefix },
      {
        client: cluster,
        codec: spec.codec,
        transformer: transformerOf(spec),
        attributesOf: attributesOf(spec),
        leases: this.#leases,
        clock,
        decoded: this.#decoded,
        revisions: this.#revisions,
        compactRevision: () => this.#compactor.compactRevision,
      },
    );
    const storage = this.#options.isCached
      ? new Cacher(
          {
            kind,
            resource: { group: kind.group, resource },
            resourcePrefix,
            attributesOf: attributesOf(spec),
            indexFields: resource === "pods" ? ["spec.nodeName"] : [],
          },
          {
            storage: underlying,
            clock,
            random: random.fork(`cacher ${resourcePrefix}`),
            logger: logger.child("cacher", { resource }),
          },
        )
      : underlying;
    this.#opened.add({
      spec,
      storage,
      close: async () => {
        await storage.close();
        if (storage !== underlying) await underlying.close();
      },
    });
    return storage;
  }

  /** Closes the storage of a resource that is served no more. */
  async release(storage: StorageInterface): Promise<void> {
    for (const opened of this.#opened) {
      if (opened.storage !== storage) continue;
      this.#opened.delete(opened);
      await opened.close();
    }
  }

  /** The resources whose storage cannot serve yet, with the reasons. */
  get unready(): string[] {
    return [...this.#opened].flatMap(({ spec, storage }) => {
      const reason = storage.readiness();
      return reason === undefined ? [] : [`${spec.resource}: ${reason}`];
    });
  }

  /** How many objects each resource has, as its cache knows. */
  async counts(): Promise<readonly { readonly spec: ResourceSpec; readonly count: number }[]> {
    const all = [...this.#opened];
    return Promise.all(
      all.map(async ({ spec, storage }) => ({ spec, count: (await storage.stats()).objectCount })),
    );
  }

  /** What the caches count, each with its resource as labels. */
  samples(): MetricSample[] {
    return [...this.#opened].flatMap(({ storage }) =>
      storage instanceof Cacher ? storage.metrics.samples() : [],
    );
  }

  async close(): Promise<void> {
    this.#compactor.stop();
    const all = [...this.#opened];
    this.#opened.clear();
    await Promise.all(all.map((opened) => opened.close()));
  }
}
