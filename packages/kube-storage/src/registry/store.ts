/**
 * The generic registry store: a resource's verbs over its storage and its strategy (apiserver:
 * registry/generic/registry/store.go).
 *
 *     handlers -> Store -> strategy, hooks, validation
 *                       -> StorageInterface (Cacher over EtcdStore)
 */
import type { KubeObject } from "../meta/object.ts";
import type { RequestContext } from "../rest/context.ts";
import type {
  CollectionDeleter,
  Creater,
  Getter,
  GracefulDeleter,
  Lister,
  RestDeleteOptions,
  RestGetOptions,
  RestList,
  RestListOptions,
  UpdatedObject,
  Updater,
  ValidateObject,
  ValidateUpdate,
  Watcher,
  WriteOptions,
} from "../rest/interfaces.ts";
import type { Watch } from "../storage/interface.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { createObject } from "./create.ts";
import { type DeleteResult, deleteObject } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import { getObject, listObjects, watchObjects } from "./read.ts";
import type { ResourceParts } from "./resource-parts.ts";
import type { ResourceSpec } from "./resource-spec.ts";
import type { StoreContext } from "./store-context.ts";
import type { Strategy } from "./strategy.ts";
import { updateObject } from "./update.ts";

function contextOf(spec: ResourceSpec, parts: ResourceParts, strategy: Strategy): StoreContext {
  const { group } = spec.servedKind ?? spec.kind;
  const resource = { group, resource: spec.resource };
  return { spec, parts, resource, updateStrategy: strategy };
}

/** All verbs of a resource. All methods reject with ApiError. */
export class Store
  implements Getter, Lister, Watcher, Creater, Updater, GracefulDeleter, CollectionDeleter
{
  readonly #context: StoreContext;

  constructor(spec: ResourceSpec, parts: ResourceParts) {
    this.#context = contextOf(spec, parts, spec.strategy);
  }

  get(ctx: RequestContext, name: string, options: RestGetOptions): Promise<StoredObject> {
    return getObject(this.#context, ctx, name, options);
  }

  list(ctx: RequestContext, options: RestListOptions): Promise<RestList> {
    return listObjects(this.#context, ctx, options);
  }

  watch(ctx: RequestContext, options: RestListOptions): Promise<Watch> {
    return watchObjects(this.#context, ctx, options);
  }

  create(
    ctx: RequestContext,
    object: KubeObject,
    validate: ValidateObject,
    options: WriteOptions,
  ): Promise<KubeObject> {
    return createObject(this.#context, ctx, object, validate, options);
  }

  update(
    ctx: RequestContext,
    name: string,
    updated: UpdatedObject,
    validateCreate: ValidateObject,
    validateUpdate: ValidateUpdate,
    forceAllowCreate: boolean,
    options: WriteOptions,
  ): Promise<{ readonly object: KubeObject; readonly created: boolean }> {
    const context = this.#context;
    const call = { context, ctx, name, updated, validateCreate, validateUpdate };
    return updateObject(call, forceAllowCreate, options);
  }

  delete(
    ctx: RequestContext,
    name: string,
    validate: ValidateObject,
    options: RestDeleteOptions,
  ): Promise<DeleteResult> {
    return deleteObject(this.#context, ctx, name, validate, options);
  }

  deleteCollection(
    ctx: RequestContext,
    validate: ValidateObject,
    options: RestDeleteOptions,
    listOptions: RestListOptions,
  ): Promise<RestList> {
    return deleteCollection(this.#context, ctx, validate, options, listOptions);
  }
}

/** A subresource that changes a part of the object, such as /status. It never creates objects. */
export class SubresourceStore implements Getter, Updater {
  readonly #context: StoreContext;

  /** @param strategy its prepareForUpdate restores what the subresource may not change */
  constructor(spec: ResourceSpec, parts: ResourceParts, strategy: Strategy) {
    this.#context = contextOf(spec, parts, strategy);
  }

  get(ctx: RequestContext, name: string, options: RestGetOptions): Promise<StoredObject> {
    return getObject(this.#context, ctx, name, options);
  }

  update(
    ctx: RequestContext,
    name: string,
    updated: UpdatedObject,
    validateCreate: ValidateObject,
    validateUpdate: ValidateUpdate,
    _forceAllowCreate: boolean,
    options: WriteOptions,
  ): Promise<{ readonly object: KubeObject; readonly created: boolean }> {
    const context = this.#context;
    const call = { context, ctx, name, updated, validateCreate, validateUpdate };
    return updateObject(call, false, options);
  }
}
