/**
 * The store of definitions. The first deletion of a definition sets its finalizer and the condition
 * Terminating; the definition goes when its instances are deleted (apiextensions-apiserver:
 * registry/customresourcedefinition/etcd.go).
 */

import type {
  RequestContext,
  ResourceParts,
  ResourceSpec,
  RestDeleteOptions,
  ValidateObject,
} from "@quorate/kube-storage";
import {
  conflict,
  interpretStorageError,
  keyOf,
  metaTime,
  RequestWriter,
  Store,
  withMetadata,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { withCondition } from "./conditions.ts";
import { CLEANUP_FINALIZER, CRD_RESOURCE, type Crd } from "./types.ts";

export class CrdStore extends Store {
  readonly #spec: ResourceSpec;
  readonly #parts: ResourceParts;

  constructor(spec: ResourceSpec, parts: ResourceParts) {
    super(spec, parts);
    this.#spec = spec;
    this.#parts = parts;
  }

  override async delete(
    ctx: RequestContext,
    name: string,
    validate: ValidateObject,
    options: RestDeleteOptions,
  ) {
    const present = (await this.get(ctx, name, { resourceVersion: "" })).object();
    const preconditions = preconditionsOf(name, present as Crd, options);
    if (present.metadata.deletionTimestamp !== undefined) {
      return await super.delete(ctx, name, validate, { ...options, preconditions });
    }
    const writer = new RequestWriter(this.#parts.storage, ctx, options.dryRun);
    const now = metaTime(this.#parts.clock.wallMs());
    try {
      const result = await writer.update(
        keyOf(this.#spec, "", name),
        async (existing) => {
          await validate(defined(existing, "the object"));
          return { object: terminating(existing as Crd, now) };
        },
        false,
        preconditions,
      );
      return { result, deletedNow: false };
    } catch (error) {
      throw interpretStorageError(error, "update", CRD_RESOURCE, name);
    }
  }
}

/** The definition that was read, and no other one of its name. Throws ApiError 409. */
function preconditionsOf(name: string, crd: Crd, { preconditions = {} }: RestDeleteOptions) {
  const { uid = "", resourceVersion = "" } = crd.metadata;
  const wanted = preconditions.uid ?? uid;
  const failed = (what: string, want: string, is: string) =>
    `Precondition failed: ${what} in precondition: ${want}, ${what} in object meta: ${is}`;
  if (wanted !== uid) throw conflict(CRD_RESOURCE, name, failed("UID", wanted, uid));
  const revision = preconditions.resourceVersion;
  if (revision !== undefined && revision !== resourceVersion) {
    throw conflict(CRD_RESOURCE, name, failed("ResourceVersion", revision, resourceVersion));
  }
  return { ...preconditions, uid };
}

function terminating(crd: Crd, now: string): Crd {
  const { deletionTimestamp = now, finalizers = [] } = crd.metadata;
  const kept = finalizers.includes(CLEANUP_FINALIZER)
    ? finalizers
    : [...finalizers, CLEANUP_FINALIZER];
  const marked = withMetadata(crd, { deletionTimestamp, finalizers: kept }) as Crd;
  return withCondition(
    marked,
    {
      type: "Terminating",
      status: "True",
      reason: "InstanceDeletionPending",
      message:
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    },
    now,
  );
}
