/**
 * The storages of all resources of a server: for each a Cacher over an EtcdStore (apiserver:
 * generic/registry StorageWithCacher, where CacherStorage wraps UnderlyingStorage).
 *
 *     registry Store -> Cacher -> EtcdStore -> ClusterClient -> cluster
 *
 * Some resources may be in other clusters (--etcd-servers-overrides). Each cluster has its own
 * leases, compactions and revisions.
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
  keyOf,
  LeaseManager,
  withUid,
} from "@quorate/kube-storage";
import { defined, fromUtf8 } from "@quorate/proto";

export interface ResourceStoragesOptions {
  /** Before all keys: "/registry" (rootOf of --etcd-prefix). */
  readonly root: string;
  /** --watch-cache: without it, reads and watches go to the cluster. */
  readonly isCached: boolean;
  /** Shards of a resource can be selected. */
  readonly takesShards: boolean;
  /** --etcd-compaction-interval; 0: another server compacts. */
  readonly compactionIntervalMs: number;
}

/** A cluster that holds some resources instead of the first one. */
export interface ClusterOverride {
  readonly cluster: ClusterClient;
  readonly holds: readonly { readonly group: string; readonly resource: string }[];
}

export interface ResourceStoragesDeps {
  readonly cluster: ClusterClient;
  /** Absent: there is one cluster. */
  readonly overrides?: readonly ClusterOverride[] | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Of a resource's values at rest. */
  transformerOf(spec: ResourceSpec): ValueTransformer;
}

/** One cluster with what is kept for it. */
class Backend {
  readonly client: ClusterClient;
  readonly leases: LeaseManager;
  readonly revisions: KeyRevisions;
  readonly compactor: Compactor;

  constructor(client: ClusterClient, compactionIntervalMs: number, deps: ResourceStoragesDeps) {
    const { clock, logger } = deps;
    this.client = client;
    this.compactor = new Compactor(compactionIntervalMs, { client, clock, logger });
    this.revisions = new KeyRevisions(client, clock);
    this.leases = new LeaseManager(
      (ttlSeconds) => client.grantLease(ttlSeconds),
      () => clock.monotonicMs(),
    );
  }
}

interface Opened {
  readonly backend: Backend;
  readonly spec: ResourceSpec;
  readonly storage: StorageInterface;
  close(): Promise<void>;
}

export class ResourceStorages implements StorageFactory {
  readonly #options: ResourceStoragesOptions;
  readonly #deps: ResourceStoragesDeps;
  readonly #decoded = new DecodedObjects();
  /** The first cluster, then those of overrides, in their order. */
  readonly #backends: readonly Backend[];
  readonly #opened = new Set<Opened>();

  constructor(options: ResourceStoragesOptions, deps: ResourceStoragesDeps) {
    this.#options = options;
    this.#deps = deps;
    const clients = [deps.cluster, ...(deps.overrides ?? []).map(({ cluster }) => cluster)];
    this.#backends = clients.map(
      (client) => new Backend(client, options.compactionIntervalMs, deps),
    );
  }

  #backendOf({ kind, resource }: ResourceSpec): Backend {
    const at = (this.#deps.overrides ?? []).findIndex(({ holds }) =>
      holds.some((one) => one.group === kind.group && one.resource === resource),
    );
    return defined(this.#backends[at + 1], "the cluster");
  }

  /**
   * Opens a storage, whose cache begins to fill; `release` closes it. Resources with the same
   * prefix, such as the events of both groups, share one.
   */
  storageFor(spec: ResourceSpec): StorageInterface {
    for (const { spec: other, storage } of spec.ownStorage === true ? [] : this.#opened)
      if (other.storagePrefix === spec.storagePrefix) return storage;
    const { clock, random, logger, transformerOf } = this.#deps;
    const backend = this.#backendOf(spec);
    const { kind, resource, storagePrefix } = spec;
    const resourcePrefix = `/${storagePrefix}`;
    const plain = attributesOf(spec);
    const attributes = this.#options.takesShards ? withUid(plain) : plain;
    const underlying = new EtcdStore(
      { kind, root: this.#options.root, resourcePrefix },
      {
        client: backend.client,
        codec: spec.codec,
        transformer: transformerOf(spec),
        attributesOf: attributes,
        leases: backend.leases,
        clock,
        decoded: this.#decoded,
        revisions: backend.revisions,
        compactRevision: () => backend.compactor.compactRevision,
      },
    );
    const storage = this.#options.isCached
      ? new Cacher(
          {
            kind,
            resource: { group: kind.group, resource },
            resourcePrefix,
            attributesOf: attributes,
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
      backend,
      spec,
      storage,
      close: async () => {
        await storage.close();
        if (storage !== underlying) await underlying.close();
      },
    });
    return storage;
  }

  /**
   * Writes an object's bytes again, so that only its resourceVersion goes on. Resolves with the
   * new one; undefined where there is no object, or another write came first.
   */
  async rewrite(
    { group, resource }: { readonly group: string; readonly resource: string },
    namespace: string,
    name: string,
  ): Promise<number | undefined> {
    for (const { backend, spec } of this.#opened) {
      if (spec.kind.group !== group || spec.resource !== resource) continue;
      const text = this.#options.root + keyOf(spec, namespace, name);
      const [key, end] = [fromUtf8(text).slice(), fromUtf8(`${text}\0`).slice()];
      const { records } = await backend.client.range(key, { end, revision: 0, limit: 1 });
      const [record] = records;
      if (record === undefined) return undefined;
      const options = { expectedRevision: record.modRevision, readOnFailure: false };
      const written = await backend.client.put(key, record.value.slice(), "keep", options);
      return written.succeeded ? written.revision : undefined;
    }
    return undefined;
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
    return this.#backends.flatMap((_, at) => this.unreadyIn(at));
  }

  /** Those of one cluster: 0 for the first one, then those of overrides. */
  unreadyIn(cluster: number): string[] {
    return [...this.#opened].flatMap(({ backend, spec, storage }) => {
      if (backend !== this.#backends[cluster]) return [];
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
    for (const { compactor } of this.#backends) compactor.stop();
    const all = [...this.#opened];
    this.#opened.clear();
    await Promise.all(all.map((opened) => opened.close()));
  }
}
