/**
 * The generic registry store: a resource's verbs over its storage and its strategy (apiserver:
 * registry/generic/registry/store.go).
 *
 *     handlers -> store -> strategy, hooks, validation
 *                       -> StorageInterface (Cacher over EtcdStore)
 */
import type { Getter, RestStorage, Updater } from "../rest/interfaces.ts";
import { createObject } from "./create.ts";
import { deleteObject } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import { getObject, listObjects, watchObjects } from "./read.ts";
import type { ResourceParts, ResourceSpec, StoreContext } from "./resource-spec.ts";
import type { StoreHooks, Strategy } from "./strategy.ts";
import { updateObject } from "./update.ts";

function contextOf(
  spec: ResourceSpec,
  parts: ResourceParts,
  strategy: Strategy,
  hooks: StoreHooks,
): StoreContext {
  const { group } = spec.servedKind ?? spec.kind;
  const resource = { group, resource: spec.resource };
  return { spec, parts, resource, updateStrategy: strategy, hooks };
}

/** The verbs of a resource. All reject with ApiError. */
export type ResourceStore = Required<Omit<RestStorage, "createNamed">>;

/** All verbs of a resource. */
export function storeOf(spec: ResourceSpec, parts: ResourceParts): ResourceStore {
  const context = contextOf(spec, parts, spec.strategy, spec.hooks ?? {});
  return {
    get: (...call) => getObject(context, ...call),
    list: (...call) => listObjects(context, ...call),
    watch: (...call) => watchObjects(context, ...call),
    create: (...call) => createObject(context, ...call),
    update: (...call) => updateObject(context, ...call),
    delete: (...call) => deleteObject(context, ...call),
    deleteCollection: (...call) => deleteCollection(context, ...call),
  };
}

/**
 * A subresource that changes a part of the object, such as /status. It never creates objects.
 * @param strategy its prepareForUpdate restores what the subresource may not change
 */
export function subresourceStoreOf(
  spec: ResourceSpec,
  parts: ResourceParts,
  strategy: Strategy,
): Getter & Updater {
  const context = contextOf(spec, parts, strategy, {});
  return {
    get: (...call) => getObject(context, ...call),
    update: (ctx, name, updated, validateCreate, validateUpdate, _mayCreate, options) =>
      updateObject(context, ctx, name, updated, validateCreate, validateUpdate, false, options),
  };
}
