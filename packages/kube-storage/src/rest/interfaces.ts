/**
 * What a resource offers (apiserver: pkg/registry/rest/rest.go). A storage implements those of
 * these interfaces that its verbs need; the handlers find out which by `in` checks on the method.
 * All methods reject with ApiError.
 */

import type { KubeObject } from "../meta/object.ts";
import type { SelectionPredicate } from "../meta/selectors.ts";
import type { Status } from "../meta/status.ts";
import type { Preconditions, Watch } from "../storage/interface.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import type { RequestContext } from "./context.ts";

/** metav1.GetOptions. */
export interface RestGetOptions {
  readonly resourceVersion: string;
}

/** metav1.ListOptions, with selectors parsed. `limit` and `continueToken` are in `predicate`. */
export interface RestListOptions {
  readonly predicate: SelectionPredicate;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: "" | "NotOlderThan" | "Exact";
  readonly timeoutSeconds?: number | undefined;
  readonly sendInitialEvents?: boolean | undefined;
}

/** metav1.CreateOptions and UpdateOptions. */
export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldManager: string;
  readonly fieldValidation: "Ignore" | "Warn" | "Strict";
}

export type DeletionPropagation = "Orphan" | "Background" | "Foreground";

/** metav1.DeleteOptions. */
export interface RestDeleteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly preconditions?: Preconditions | undefined;
  readonly orphanDependents?: boolean | undefined;
  readonly propagationPolicy?: DeletionPropagation | undefined;
  readonly dryRun: boolean;
}

/** A page of a list as the handlers encode it. */
export interface RestList {
  readonly items: readonly StoredObject[];
  readonly resourceVersion: string;
  readonly continueToken: string;
  readonly remainingItemCount: number | undefined;
  /** The selector of the shards that the list has; absent: all. */
  readonly shardSelector?: string | undefined;
}

/** Admission of a new object, after the storage has prepared it. Throws ApiError. */
export type ValidateObject = (object: KubeObject) => Promise<void>;
/** Admission of a changed object. Throws ApiError. */
export type ValidateUpdate = (object: KubeObject, old: KubeObject) => Promise<void>;

/** Makes the new object of an update from the present one (rest.UpdatedObjectInfo). */
export interface UpdatedObject {
  readonly preconditions?: Preconditions | undefined;
  /**
   * Called again after a conflict.
   * @param old undefined where there is no object and the resource allows creation by update
   */
  make(ctx: RequestContext, old: KubeObject | undefined): Promise<KubeObject>;
}

export interface Getter {
  get(ctx: RequestContext, name: string, options: RestGetOptions): Promise<StoredObject>;
}

export interface Lister {
  list(ctx: RequestContext, options: RestListOptions): Promise<RestList>;
}

export interface Watcher {
  watch(ctx: RequestContext, options: RestListOptions): Promise<Watch>;
}

export interface Creater {
  /** @param validate admission; called before the write, also for a dry run */
  create(
    ctx: RequestContext,
    object: KubeObject,
    validate: ValidateObject,
    options: WriteOptions,
  ): Promise<KubeObject>;
}

/** Creates a subresource of a named object, such as serviceaccounts/token. */
export interface NamedCreater {
  createNamed(
    ctx: RequestContext,
    name: string,
    object: KubeObject,
    validate: ValidateObject,
    options: WriteOptions,
  ): Promise<KubeObject>;
}

export interface Updater {
  update(
    ctx: RequestContext,
    name: string,
    updated: UpdatedObject,
    validateCreate: ValidateObject,
    validateUpdate: ValidateUpdate,
    /** Server-side apply creates objects that are not there. */
    forceAllowCreate: boolean,
    options: WriteOptions,
  ): Promise<{ readonly object: KubeObject; readonly created: boolean }>;
}

export interface GracefulDeleter {
  /** `deletedNow` is false where finalizers or a grace period keep the object (HTTP 200 both). */
  delete(
    ctx: RequestContext,
    name: string,
    validate: ValidateObject,
    options: RestDeleteOptions,
  ): Promise<{ readonly result: KubeObject | Status; readonly deletedNow: boolean }>;
}

export interface CollectionDeleter {
  deleteCollection(
    ctx: RequestContext,
    validate: ValidateObject,
    options: RestDeleteOptions,
    listOptions: RestListOptions,
  ): Promise<RestList>;
}

/** A column of a Table (metav1.TableColumnDefinition). */
export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** 0 is shown always; higher ones only in wide output. */
  readonly priority: number;
}

/** Makes the rows that kubectl prints. */
export interface TableConvertor {
  readonly columns: readonly TableColumn[];
  /** @param nowMs wall time, for ages */
  cells(object: KubeObject, nowMs: number): readonly unknown[];
}

/** All that a storage may offer. */
export type RestStorage = Partial<
  Getter & Lister & Watcher & Creater & NamedCreater & Updater & GracefulDeleter & CollectionDeleter
>;

/** The storage of a route whose verb needs `method`: a route is there only for what it has. */
export function storageWith<K extends keyof RestStorage>(
  storage: RestStorage,
  method: K,
): RestStorage & Required<Pick<RestStorage, K>> {
  if (storage[method] === undefined) throw new TypeError(`the storage has no ${method}`);
  return storage as RestStorage & Required<Pick<RestStorage, K>>;
}
