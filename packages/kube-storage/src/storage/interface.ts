/**
 * The storage of one resource (apiserver: pkg/storage/interfaces.go). EtcdStore implements it over
 * a cluster; Cacher implements it over another one; both pass the contract suite in testing/.
 *
 * Keys are those below the root: "/configmaps/default/app", without etcd's prefix ("/registry").
 * StoredObject.key has the same form, so a watch of a prefix compares the two directly.
 *
 * All methods reject with StorageError (operating errors) or with what a caller's function threw.
 */
import type { Cancellation } from "../meta/cancellation.ts";
import type { KubeObject } from "../meta/object.ts";
import type { SelectionPredicate } from "../meta/selectors.ts";
import type { ApiError } from "../meta/status.ts";
import type { StoredObject } from "./stored-object.ts";

/** Reads and writes revisions in objects, list responses and request parameters. */
export interface Versioner {
  /** Returns a copy with metadata.resourceVersion set; 0 removes it. */
  withResourceVersion(object: KubeObject, revision: number): KubeObject;
  /** The revision of an object; 0 without one. Throws ApiError for a malformed one. */
  resourceVersionOf(object: KubeObject): number;
  /** Parses a request's parameter: "" and "0" are 0. Throws ApiError 400 "Invalid value". */
  parse(resourceVersion: string): number;
}

/** What must hold of the present object, else StorageError "InvalidObj" (409 to the client). */
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Options of every call. */
export interface CallOptions {
  /** The client is gone, or its timeout has passed. The call rejects with the signal's reason. */
  readonly signal?: Cancellation;
}

export interface GetOptions extends CallOptions {
  /** Resolve with undefined instead of rejecting with "KeyNotFound". */
  readonly ignoreNotFound?: boolean;
  /** "": the latest. "0": any. Otherwise not older than this. */
  readonly resourceVersion?: string;
}

/** metav1's resourceVersionMatch; "" where the client set none. */
export type ResourceVersionMatch = "" | "NotOlderThan" | "Exact";

/** Options of getList and watch (storage.ListOptions). */
export interface ListOptions extends CallOptions {
  readonly resourceVersion: string;
  readonly resourceVersionMatch: ResourceVersionMatch;
  readonly predicate: SelectionPredicate;
  /** Everything below the key (a prefix that ends with "/"), not one object. */
  readonly recursive: boolean;
  /** getList: takes each object as it is read, where a storage can that; it is no item then. */
  readonly forEach?: ((object: StoredObject) => void) | undefined;
  /** watch: begin with the present objects and a bookmark (Kubernetes' WatchList). */
  readonly sendInitialEvents?: boolean | undefined;
  /** watch: send the bookmark of requestWatchProgress as an event (the Cacher's own watch). */
  readonly progressNotify?: boolean;
  /** watch: its caller ends it after this time in milliseconds; a bookmark comes 2 s before. */
  readonly timeoutMs?: number | undefined;
}

export interface ListResult {
  readonly items: readonly StoredObject[];
  /** The revision at which the list was read; later pages keep the first page's. */
  readonly resourceVersion: number;
  /** "" on the last page. */
  readonly continueToken: string;
  /** How many objects follow; undefined where that is unknown (selectors). */
  readonly remainingItemCount: number | undefined;
}

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

/**
 * One change as a watcher sees it. A change that makes an object leave a selector is DELETED, one
 * that makes it enter is ADDED. The object of DELETED has the revision of the deletion.
 */
export interface WatchEvent {
  readonly type: WatchEventType;
  /** For BOOKMARK: only kind, apiVersion, resourceVersion and annotations. */
  readonly object: StoredObject;
}

/** Receives the events of a watch, in order. */
export interface WatchListener {
  /** Returns false when no more should come until `resume`. The event itself is accepted. */
  event(event: WatchEvent): boolean;
  /** The watch is over, by itself: undefined to retry from the last event, or the error to send. */
  ended(error: ApiError | undefined): void;
}

/** A watch. Its events wait, within a bound, until `start`. */
export interface Watch {
  /** Called once. Events may arrive before it returns. */
  start(listener: WatchListener): void;
  /** Continues after `event` returned false. */
  resume(): void;
  /** Ends it; the listener is called no more. Safe to call twice. */
  stop(): void;
}

/** The result of a caller's function in guaranteedUpdate. */
export interface Updated {
  readonly object: KubeObject;
  /** A new time to live; undefined keeps the present one. */
  readonly ttlSeconds?: number | undefined;
}

/**
 * Makes the next version from the present one; called again after a conflict. `present` is
 * undefined where `ignoreNotFound` is set and there is no object.
 */
export type UpdateFunction = (
  present: KubeObject | undefined,
  presentTtlSeconds: number | undefined,
) => Updated | Promise<Updated>;

export interface UpdateOptions extends CallOptions {
  readonly ignoreNotFound: boolean;
  readonly preconditions?: Preconditions;
  /** A possibly stale copy to begin with, which saves a read where it is the present one. */
  readonly cached?: StoredObject | undefined;
}

export interface DeleteOptions extends CallOptions {
  readonly preconditions?: Preconditions;
  /** Checks the object that is about to be deleted; its rejection is the result. */
  readonly validate?: ((object: KubeObject) => void | Promise<void>) | undefined;
  readonly cached?: StoredObject | undefined;
}

export interface StorageStats {
  readonly objectCount: number;
  /** Estimated bytes of one object; 0 where that is unknown. */
  readonly averageObjectSizeBytes: number;
}

export interface StorageInterface {
  readonly versioner: Versioner;
  /**
   * Creates the object; "KeyExists" if there is one.
   * @param ttlSeconds 0 for none
   */
  create(
    key: string,
    object: KubeObject,
    ttlSeconds: number,
    options?: CallOptions,
  ): Promise<StoredObject>;
  /** Deletes and resolves with the object, whose resourceVersion is that of the deletion. */
  delete(key: string, options?: DeleteOptions): Promise<StoredObject>;
  get(key: string, options?: GetOptions): Promise<StoredObject | undefined>;
  /**
   * The resourceVersion of the key's present object, 0 where there is none: what a cache asks in
   * place of `get` for an object that it has. Cheaper than that, and absent where it is not.
   */
  revisionOf?(key: string, options?: CallOptions): Promise<number>;
  getList(key: string, options: ListOptions): Promise<ListResult>;
  /** Resolves when the watch is established; rejects with "TooOldResourceVersion" (410) etc. */
  watch(key: string, options: ListOptions): Promise<Watch>;
  /** Reads, calls `update` and writes, until no other write came in between. */
  guaranteedUpdate(
    key: string,
    update: UpdateFunction,
    options: UpdateOptions,
  ): Promise<StoredObject>;
  /** What a read gives of an object after its write. Absent where that is the object itself. */
  asRead?(object: KubeObject): Promise<KubeObject>;
  stats(options?: CallOptions): Promise<StorageStats>;
  /** Asks the store for its revision on all watches (bookmarks follow). */
  requestWatchProgress(): Promise<void>;
  /** The latest revision of the store. */
  currentResourceVersion(options?: CallOptions): Promise<number>;
  /** The latest compaction that is known: revisions below are gone; 0 or absent: unknown. */
  compactRevision?(): number;
  /** Undefined when requests can be served, else why not. */
  readiness(): string | undefined;
  /** Releases watches and timers. */
  close(): Promise<void>;
}
