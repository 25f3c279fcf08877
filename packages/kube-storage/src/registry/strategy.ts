/**
 * The rules of a kind around the generic store (apiserver: pkg/registry/rest/{create,update,
 * delete}_strategy.go). The store fills in and checks metadata; a strategy does the rest.
 *
 *     create: prepareForCreate, validate, warningsOnCreate, canonicalize, admission, write
 *     update: prepareForUpdate, validateUpdate, warningsOnUpdate, canonicalize, admission, write
 */

import { semanticEqual } from "../meta/equality.ts";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { type KubeObject, withField, withMetadata } from "../meta/object.ts";
import type { FieldError } from "../meta/status.ts";
import type { RequestContext } from "../rest/context.ts";

export interface Strategy {
  readonly kind: GroupVersionKind;
  readonly namespaced: boolean;
  /** Sets fields that clients may not set, such as an empty status. Returns a copy if it does. */
  prepareForCreate(ctx: RequestContext, object: KubeObject): KubeObject;
  /** All errors of a new object besides those of metadata. */
  validate(
    ctx: RequestContext,
    object: KubeObject,
  ): readonly FieldError[] | Promise<readonly FieldError[]>;
  warningsOnCreate?(ctx: RequestContext, object: KubeObject): readonly string[];
  /** PUT creates an object that is not there. */
  readonly allowCreateOnUpdate: boolean;
  /** PUT without resourceVersion overwrites. */
  readonly allowUnconditionalUpdate: boolean;
  /** Restores what this endpoint may not change: status at the resource, all else at its status. */
  prepareForUpdate(ctx: RequestContext, object: KubeObject, old: KubeObject): KubeObject;
  validateUpdate(
    ctx: RequestContext,
    object: KubeObject,
    old: KubeObject,
  ): readonly FieldError[] | Promise<readonly FieldError[]>;
  warningsOnUpdate?(ctx: RequestContext, object: KubeObject, old: KubeObject): readonly string[];
  /** The same object in one form, for example with sorted lists. */
  canonicalize?(object: KubeObject): KubeObject;
  /** Fields that this endpoint resets, as fieldsV1; server-side apply must not own them. */
  readonly resetFields?: Readonly<Record<string, unknown>>;
  /** Seconds of a graceful deletion; absent for kinds that are deleted at once. */
  gracePeriodSeconds?(object: KubeObject, requested: number | undefined): number;
}

/** A write that has begun. */
export interface BegunWrite {
  /** The object, changed or not. */
  readonly object: KubeObject;
  /** Called once, when the object has been written or never will be. Does not reject. */
  finish?(isWritten: boolean): Promise<void>;
}

/** Runs around the generic store's operations (Before/After functions); not around /status. */
export interface StoreHooks {
  /** Throws ApiError. */
  beginCreate?(ctx: RequestContext, object: KubeObject, dryRun: boolean): Promise<BegunWrite>;
  afterCreate?(object: KubeObject): void;
  /** Throws ApiError. */
  beginUpdate?(
    ctx: RequestContext,
    object: KubeObject,
    old: KubeObject,
    dryRun: boolean,
  ): Promise<BegunWrite>;
  afterUpdate?(object: KubeObject): void;
  beginDelete?(ctx: RequestContext, object: KubeObject): Promise<void>;
  /** The response waits for it. */
  afterDelete?(object: KubeObject): void | Promise<void>;
}

const NO_ERRORS = () => [];

export interface PlainOptions {
  readonly kind: GroupVersionKind;
  readonly namespaced: boolean;
  /** The resource has /status: only that endpoint changes the status. */
  readonly hasStatus?: boolean;
  /** metadata.generation counts the changes of all fields but metadata and status. */
  readonly countsGenerations?: boolean;
}

/**
 * The strategy of kinds without rules of their own: metadata, and the division into spec and
 * status. Other strategies are this one with some members replaced.
 */
export function plainStrategy(options: PlainOptions, overrides: Partial<Strategy> = {}): Strategy {
  const { kind, namespaced, hasStatus = false, countsGenerations = false } = options;
  return {
    kind,
    namespaced,
    prepareForCreate(_ctx, object) {
      const prepared = hasStatus ? withField(object, "status", undefined) : object;
      return countsGenerations ? withMetadata(prepared, { generation: 1 }) : prepared;
    },
    validate: NO_ERRORS,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    prepareForUpdate(_ctx, object, old) {
      const prepared = hasStatus ? withField(object, "status", old["status"]) : object;
      return countsGenerations ? withGeneration(prepared, old) : prepared;
    },
    validateUpdate: NO_ERRORS,
    ...(hasStatus ? { resetFields: { "f:status": {} } } : {}),
    ...overrides,
  };
}

/** The object with the next generation where more than metadata and status changed. */
export function withGeneration(object: KubeObject, old: KubeObject): KubeObject {
  const { metadata: _, status: __, ...present } = object;
  const { metadata: ___, status: ____, ...before } = old;
  if (semanticEqual(present, before)) return object;
  return withMetadata(object, { generation: (old.metadata.generation ?? 0) + 1 });
}

/** The strategy of /status: all but the status and metadata stays as it is. */
export function statusStrategyOf(strategy: Strategy, overrides: Partial<Strategy> = {}): Strategy {
  const { warningsOnUpdate: _, ...kept } = strategy;
  return {
    ...kept,
    allowCreateOnUpdate: false,
    prepareForUpdate(_ctx, object, old) {
      return { ...old, metadata: object.metadata, status: object["status"] };
    },
    validateUpdate: NO_ERRORS,
    resetFields: { "f:spec": {} },
    ...overrides,
  };
}
