/**
 * The storage of one resource over a cluster (apiserver: pkg/storage/etcd3/store.go). Each
 * operation is one request: a write compares the key's mod revision, and where that fails, the same
 * transaction reads the present object for the next attempt.
 *
 *     create   if mod(key) = 0 then put
 *     update   if mod(key) = N then put else get
 *     delete   if mod(key) = N then delete else get
 */
import { type Clock, Pauses } from "@quorate/host";
import { defined, equals, fromUtf8 } from "@quorate/proto";
import { throwIfAborted, unlessAborted } from "../meta/cancellation.ts";
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import type { AttributesOf } from "../meta/selectors.ts";
import {
  type ClusterClient,
  ClusterError,
  type ClusterPart,
  type ClusterRangeOptions,
  type ClusterRecord,
} from "./cluster-client.ts";
import type { ObjectCodec, ValueTransformer } from "./codec.ts";
import {
  keyExists,
  keyNotFound,
  requestTimeout,
  StorageError,
  tooLarge,
  unreachable,
} from "./errors.ts";
import { listPages } from "./etcd-list.ts";
import { DecodedObjects, EtcdValues, endOfKey, objectVersioner } from "./etcd-values.ts";
import { EtcdWatch } from "./etcd-watch.ts";
import type {
  CallOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  ListResult,
  StorageInterface,
  StorageStats,
  UpdateFunction,
  UpdateOptions,
  Versioner,
  Watch,
} from "./interface.ts";
import { KeyRevisions } from "./key-revisions.ts";
import { checkedKey, endOfPrefix } from "./keys.ts";
import type { LeaseManager } from "./lease-manager.ts";
import { minimumRevision } from "./list-options.ts";
import { failedPrecondition } from "./preconditions.ts";
import type { StoredObject } from "./stored-object.ts";

/** Each further attempt means that another writer succeeded in between. */
const MAX_ATTEMPTS = 1000;

export interface EtcdStoreOptions {
  readonly kind: GroupVersionKind;
  /** Before all keys, without a slash at its end: "/registry" (rootOf). */
  readonly root: string;
  /** What all keys of this resource are below: "/configmaps". */
  readonly resourcePrefix: string;
}

export interface EtcdStoreDeps {
  readonly client: ClusterClient;
  readonly codec: ObjectCodec;
  readonly transformer: ValueTransformer;
  readonly attributesOf: AttributesOf;
  /** Shared by the resources of a server. */
  readonly leases: LeaseManager;
  readonly clock: Pick<Clock, "turns" | "endOfTurn">;
  /** Shared by the resources of a server; by default the store has its own. */
  readonly decoded?: DecodedObjects;
  readonly revisions?: KeyRevisions;
  /** The Compactor's, where there is one. */
  readonly compactRevision?: () => number;
}

export class EtcdStore implements StorageInterface {
  readonly versioner: Versioner = objectVersioner;
  readonly #options: EtcdStoreOptions;
  readonly #deps: EtcdStoreDeps;
  readonly #values: EtcdValues;
  readonly #revisions: KeyRevisions;
  readonly #watches = new Set<EtcdWatch>();

  constructor(options: EtcdStoreOptions, deps: EtcdStoreDeps) {
    this.#options = options;
    this.#deps = deps;
    const forms = { codec: deps.codec, decoded: deps.decoded ?? new DecodedObjects() };
    this.#values = new EtcdValues(options.root, forms, deps.transformer);
    this.#revisions = deps.revisions ?? new KeyRevisions(deps.client, deps.clock);
  }

  async create(
    key: string,
    object: KubeObject,
    ttlSeconds: number,
    options: CallOptions = {},
  ): Promise<StoredObject> {
    const storeKey = this.#storeKey(key);
    if (this.versioner.resourceVersionOf(object) !== 0)
      throw new StorageError(
        "ResourceVersionOnCreate",
        storeKey,
        "resourceVersion should not be set on objects to be created",
      );
    const { signal } = options;
    throwIfAborted(signal);
    const data = this.#values.encode(object);
    const value = await this.#values.encrypted(key, data);
    const lease = ttlSeconds === 0 ? 0n : await this.#deps.leases.leaseFor(ttlSeconds);
    const write = { expectedRevision: 0, readOnFailure: false };
    const { succeeded, revision } = await this.#request(
      storeKey,
      signal,
      this.#deps.client.put(fromUtf8(storeKey), value, lease, write),
    );
    if (!succeeded) throw keyExists(storeKey);
    return this.#values.written(key, revision, data);
  }

  async get(key: string, options: GetOptions = {}): Promise<StoredObject | undefined> {
    const storeKey = this.#storeKey(key);
    const minimum = minimumRevision(this.versioner, storeKey, options.resourceVersion ?? "");
    const { record, revision } = await this.#readRecord(storeKey, options.signal);
    if (minimum > revision) throw tooLarge(storeKey, minimum, revision);
    if (record === undefined) {
      if (options.ignoreNotFound === true) return undefined;
      throw keyNotFound(storeKey);
    }
    return (await this.#values.read(record)).stored;
  }

  revisionOf(key: string, { signal }: CallOptions = {}): Promise<number> {
    const storeKey = this.#storeKey(key);
    return this.#request(storeKey, signal, this.#revisions.read(storeKey));
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<StoredObject> {
    const storeKey = this.#storeKey(key);
    const { signal, preconditions, validate } = options;
    let state = await this.#firstState(key, options.cached, false, signal);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      throwIfAborted(signal);
      try {
        const failed = failedPrecondition(preconditions, storeKey, state.object);
        if (failed !== undefined) throw failed;
        await validate?.(defined(state.object, "the object"));
      } catch (error) {
        state = await this.#freshState(key, state, false, signal, error);
        continue;
      }
      const write = { expectedRevision: state.revision, readOnFailure: true };
      const { succeeded, revision, present } = await this.#request(
        storeKey,
        signal,
        this.#deps.client.delete(fromUtf8(storeKey), write),
      );
      if (succeeded) return this.#values.written(key, revision, defined(state.data(), "the data"));
      state = await this.#stateOf(storeKey, present, false);
    }
    throw tooManyConflicts(storeKey);
  }

  async guaranteedUpdate(
    key: string,
    update: UpdateFunction,
    options: UpdateOptions,
  ): Promise<StoredObject> {
    const storeKey = this.#storeKey(key);
    const { signal, preconditions, ignoreNotFound } = options;
    let state = await this.#firstState(key, options.cached, ignoreNotFound, signal);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      throwIfAborted(signal);
      let updated: Awaited<ReturnType<UpdateFunction>>;
      try {
        const failed = failedPrecondition(preconditions, storeKey, state.object);
        if (failed !== undefined) throw failed;
        updated = await update(state.object, undefined);
      } catch (error) {
        state = await this.#freshState(key, state, ignoreNotFound, signal, error);
        continue;
      }
      const data = this.#values.encode(updated.object);
      if (isUnchanged(state, data)) {
        // Only the cluster knows whether a cached object is the present one.
        if (!state.isCurrent) {
          state = await this.#currentState(key, ignoreNotFound, signal);
          if (!isUnchanged(state, data)) continue;
        }
        if (!state.stale) return this.#values.stored(key, state.revision, data);
      }
      const value = await this.#values.encrypted(key, data);
      const write = { expectedRevision: state.revision, readOnFailure: true };
      const lease = await this.#leaseFor(updated.ttlSeconds, state);
      const { succeeded, revision, present } = await this.#request(
        storeKey,
        signal,
        this.#deps.client.put(fromUtf8(storeKey), value, lease, write),
      );
      if (succeeded) return this.#values.written(key, revision, data);
      state = await this.#stateOf(storeKey, present, ignoreNotFound);
    }
    throw tooManyConflicts(storeKey);
  }

  async getList(key: string, options: ListOptions): Promise<ListResult> {
    const storeKey = this.#storeKey(key, options.recursive);
    return listPages(storeKey, options, {
      values: this.#values,
      versioner: this.versioner,
      attributesOf: this.#deps.attributesOf,
      slices: new Pauses(this.#deps.clock.turns),
      range: (start, range) =>
        this.#request(storeKey, options.signal, this.#deps.client.range(start, range)),
      rangeParts: (start, range) => this.#parts(storeKey, start, range, options.signal),
      currentRevision: () => this.currentResourceVersion(options),
    });
  }

  async watch(key: string, options: ListOptions): Promise<Watch> {
    const storeKey = this.#storeKey(key, options.recursive);
    const revision = this.versioner.parse(options.resourceVersion);
    // Only changes from now on: now is when the caller asks, not when it begins to listen.
    const start =
      revision === 0 && options.sendInitialEvents === false
        ? await this.currentResourceVersion(options)
        : revision;
    const watch = new EtcdWatch(storeKey, start, options, {
      kind: this.#options.kind,
      client: this.#deps.client,
      values: this.#values,
      attributesOf: this.#deps.attributesOf,
      clock: this.#deps.clock,
      currentRevision: () => this.currentResourceVersion(options),
      closed: () => this.#watches.delete(watch),
    });
    this.#watches.add(watch);
    return watch;
  }

  async stats(options: CallOptions = {}): Promise<StorageStats> {
    const prefix = this.#storeKey(this.#options.resourcePrefix, true);
    const { count } = await this.#request(
      prefix,
      options.signal,
      this.#deps.client.range(fromUtf8(prefix), {
        end: fromUtf8(endOfPrefix(prefix)),
        revision: 0,
        limit: 0,
        only: "count",
      }),
    );
    return { objectCount: count, averageObjectSizeBytes: this.#values.averageBytes };
  }

  async requestWatchProgress(): Promise<void> {
    for (const watch of this.#watches) watch.requestProgress();
  }

  async currentResourceVersion(options: CallOptions = {}): Promise<number> {
    // Any key will do: every response has the store's revision.
    const storeKey = this.#values.storeKey(this.#options.resourcePrefix);
    return (await this.#readRecord(storeKey, options.signal)).revision;
  }

  compactRevision(): number {
    return this.#deps.compactRevision?.() ?? 0;
  }

  readiness(): string | undefined {
    return undefined;
  }

  async close(): Promise<void> {
    for (const watch of this.#watches) watch.stop();
  }

  #storeKey(key: string, recursive = false): string {
    const prefix = `${this.#options.resourcePrefix}/`;
    return this.#values.storeKey(checkedKey(prefix, key, recursive));
  }

  async #request<T>(
    storeKey: string,
    signal: CallOptions["signal"],
    request: Promise<T>,
  ): Promise<T> {
    try {
      return await unlessAborted(signal, request);
    } catch (error) {
      throw requestError(storeKey, error);
    }
  }

  async *#parts(
    storeKey: string,
    start: Uint8Array,
    range: ClusterRangeOptions,
    signal: CallOptions["signal"],
  ): AsyncGenerator<ClusterPart, undefined> {
    try {
      for await (const part of this.#deps.client.rangeParts(start, range, signal)) {
        throwIfAborted(signal);
        yield part;
      }
    } catch (error) {
      throwIfAborted(signal);
      throw requestError(storeKey, error);
    }
  }

  async #readRecord(
    storeKey: string,
    signal: CallOptions["signal"],
  ): Promise<{ record: ClusterRecord | undefined; revision: number }> {
    const start = fromUtf8(storeKey);
    const range = { end: endOfKey(start), revision: 0, limit: 1 };
    const { records, revision } = await this.#request(
      storeKey,
      signal,
      this.#deps.client.range(start, range),
    );
    return { record: records[0], revision };
  }

  async #firstState(
    key: string,
    cached: StoredObject | undefined,
    ignoreNotFound: boolean,
    signal: CallOptions["signal"],
  ): Promise<PresentState> {
    if (cached === undefined) return this.#currentState(key, ignoreNotFound, signal);
    const object = cached.object();
    return {
      revision: cached.resourceVersion,
      data: () => this.#values.encode(object),
      dataBytes: cached.sizeBytes,
      object,
      stale: false,
      isCurrent: false,
    };
  }

  async #currentState(
    key: string,
    ignoreNotFound: boolean,
    signal: CallOptions["signal"],
  ): Promise<PresentState> {
    const storeKey = this.#values.storeKey(key);
    const { record } = await this.#readRecord(storeKey, signal);
    return this.#stateOf(storeKey, record, ignoreNotFound);
  }

  /**
   * The present state after `error` came from `state`. Throws `error` where that was the present
   * one already.
   */
  async #freshState(
    key: string,
    state: PresentState,
    ignoreNotFound: boolean,
    signal: CallOptions["signal"],
    error: unknown,
  ): Promise<PresentState> {
    if (state.isCurrent) throw error;
    const fresh = await this.#currentState(key, ignoreNotFound, signal);
    if (fresh.revision === state.revision) throw error;
    return fresh;
  }

  async #stateOf(
    storeKey: string,
    record: ClusterRecord | undefined,
    ignoreNotFound: boolean,
  ): Promise<PresentState> {
    if (record === undefined) {
      if (ignoreNotFound) return NO_OBJECT;
      throw keyNotFound(storeKey);
    }
    const { data, stale, stored } = await this.#values.read(record);
    return {
      revision: record.modRevision,
      object: stored.object(),
      stale,
      isCurrent: true,
      data: () => data,
      dataBytes: data.length,
    };
  }

  async #leaseFor(ttlSeconds: number | undefined, state: PresentState): Promise<bigint | "keep"> {
    if (ttlSeconds === undefined) return state.revision === 0 ? 0n : "keep";
    return ttlSeconds === 0 ? 0n : this.#deps.leases.leaseFor(ttlSeconds);
  }
}

/** The error of a failed request to the cluster. */
function requestError(storeKey: string, error: unknown): unknown {
  if (!(error instanceof ClusterError)) return error;
  if (error.code === "Unavailable") return unreachable(storeKey, error);
  return error.code === "Timeout" ? requestTimeout(storeKey, error.message, error) : error;
}

function tooManyConflicts(storeKey: string): Error {
  return requestTimeout(storeKey, `${MAX_ATTEMPTS} attempts met a conflict`);
}

/** The present object of an update or deletion, as far as it is known. */
interface PresentState {
  /** 0 where there is none. */
  readonly revision: number;
  /** The encoded object; made when it is wanted. */
  data(): Uint8Array | undefined;
  /** Length of `data`, where it is known without that. */
  readonly dataBytes: number | undefined;
  readonly object: KubeObject | undefined;
  readonly stale: boolean;
  /** Read from the cluster by this call, not from a cache. */
  readonly isCurrent: boolean;
}

/** There is none, and the caller wants to know. */
const NO_OBJECT: PresentState = {
  revision: 0,
  data: () => undefined,
  dataBytes: undefined,
  object: undefined,
  stale: false,
  isCurrent: true,
};

/** Most changes change the length too, and then the present object is not encoded again. */
function isUnchanged(state: PresentState, data: Uint8Array): boolean {
  if (state.dataBytes !== undefined && state.dataBytes !== data.length) return false;
  const present = state.data();
  return present !== undefined && equals(present, data);
}
