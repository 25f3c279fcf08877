/** The verbs of namespaces; their deletion has two steps. */

import type {
  Creater,
  DeleteResult,
  Getter,
  GracefulDeleter,
  KubeObject,
  Lister,
  RequestContext,
  ResourceParts,
  ResourceSpec,
  RestDeleteOptions,
  Updater,
  ValidateObject,
  Watcher,
} from "@quorate/kube-storage";
import {
  conflict,
  FOREGROUND_FINALIZER,
  interpretStorageError,
  keyOf,
  metaTime,
  ORPHAN_FINALIZER,
  RequestWriter,
  Store,
  withMetadata,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";

const RESOURCE = { group: "", resource: "namespaces" };

/** spec.finalizers. */
export function finalizersOf(object: KubeObject): readonly string[] {
  const spec = object["spec"] as { readonly finalizers?: readonly string[] } | undefined;
  return spec?.finalizers ?? [];
}

/** status.phase; "" without one. */
export function phaseOf(object: KubeObject): string {
  const status = object["status"] as { readonly phase?: string } | undefined;
  return status?.phase ?? "";
}

/** metadata.finalizers after a deletion with these options. */
function deletionFinalizers(
  present: readonly string[],
  { orphanDependents, propagationPolicy }: RestDeleteOptions,
): readonly string[] {
  const wants = (name: string, byFlag: boolean, policy: string): boolean => {
    if (orphanDependents !== undefined) return orphanDependents === byFlag;
    if (propagationPolicy !== undefined) return propagationPolicy === policy;
    return present.includes(name);
  };
  const own = [ORPHAN_FINALIZER, FOREGROUND_FINALIZER];
  const finalizers = present.filter((name) => !own.includes(name));
  if (wants(ORPHAN_FINALIZER, true, "Orphan")) finalizers.push(ORPHAN_FINALIZER);
  if (wants(FOREGROUND_FINALIZER, false, "Foreground")) finalizers.push(FOREGROUND_FINALIZER);
  return finalizers;
}

function checkPreconditions(name: string, present: KubeObject, options: RestDeleteOptions): void {
  const { uid = "", resourceVersion = "" } = present.metadata;
  const wanted = options.preconditions ?? {};
  const failed = (field: string, value: string, actual: string): Error => {
    const text = `Precondition failed: ${field} in precondition: ${value}, `;
    return conflict(RESOURCE, name, `${text}${field} in object meta: ${actual}`);
  };
  if (wanted.uid !== undefined && wanted.uid !== uid) throw failed("UID", wanted.uid, uid);
  if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== resourceVersion) {
    throw failed("ResourceVersion", wanted.resourceVersion, resourceVersion);
  }
}

function terminating(present: KubeObject, options: RestDeleteOptions, nowMs: number): KubeObject {
  const { deletionTimestamp = metaTime(nowMs), finalizers = [] } = present.metadata;
  const wanted = deletionFinalizers(finalizers, options);
  const marked = withMetadata(present, {
    deletionTimestamp,
    finalizers: wanted.length === 0 ? undefined : wanted,
  });
  return { ...marked, status: { ...(present["status"] as object), phase: "Terminating" } };
}

/** All verbs of namespaces; there is no deletecollection. All methods reject with ApiError. */
export class NamespaceStore implements Getter, Lister, Watcher, Creater, Updater, GracefulDeleter {
  readonly #spec: ResourceSpec;
  readonly #parts: ResourceParts;
  readonly #store: Store;
  readonly get: Store["get"];
  readonly list: Store["list"];
  readonly watch: Store["watch"];
  readonly create: Store["create"];
  readonly update: Store["update"];

  constructor(spec: ResourceSpec, parts: ResourceParts) {
    this.#spec = spec;
    this.#parts = parts;
    const store = new Store(spec, parts);
    this.#store = store;
    this.get = store.get.bind(store);
    this.list = store.list.bind(store);
    this.watch = store.watch.bind(store);
    this.create = store.create.bind(store);
    this.update = store.update.bind(store);
  }

  async delete(
    ctx: RequestContext,
    name: string,
    validate: ValidateObject,
    options: RestDeleteOptions,
  ): Promise<DeleteResult> {
    const present = (await this.get(ctx, name, { resourceVersion: "" })).object();
    checkPreconditions(name, present, options);
    const { uid, deletionTimestamp } = present.metadata;
    const preconditions = { ...options.preconditions, uid };
    const exact = { ...options, preconditions };
    if (deletionTimestamp === undefined) {
      return { result: await this.#terminate(ctx, name, validate, exact), deletedNow: false };
    }
    if (finalizersOf(present).length > 0) return { result: present, deletedNow: false };
    return await this.#store.delete(ctx, name, validate, exact);
  }

  async #terminate(
    ctx: RequestContext,
    name: string,
    validate: ValidateObject,
    options: RestDeleteOptions,
  ): Promise<KubeObject> {
    const writer = new RequestWriter(this.#parts.storage, ctx, options.dryRun);
    try {
      return await writer.update(
        keyOf(this.#spec, "", name),
        async (existing) => {
          const present = defined(existing, "the namespace");
          await validate(present);
          return { object: terminating(present, options, this.#parts.clock.wallMs()) };
        },
        false,
        options.preconditions ?? {},
      );
    } catch (error) {
      throw interpretStorageError(error, "update", RESOURCE, name);
    }
  }
}
