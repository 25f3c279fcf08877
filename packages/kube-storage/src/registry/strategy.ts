/**
 * The rules of a kind around the generic store (apiserver: pkg/registry/rest/{create,update,
 * delete}_strategy.go). The store fills in and checks metadata; a strategy does the rest.
 *
 *     create: prepareForCreate, validate, warningsOnCreate, canonicalize, admission, write
 *     update: prepareForUpdate, validateUpdate, warningsOnUpdate, canonicalize, admission, write
 */
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
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
