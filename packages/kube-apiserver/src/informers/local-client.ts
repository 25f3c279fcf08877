/**
 * Requests of the server to its own resources, by the way that clients' requests take behind
 * authorization: admission, strategy, storage. managedFields are not kept for them.
 */

import type {
  Cancellation,
  GroupVersionResource,
  KubeObject,
  Preconditions,
  RequestContext,
  RestDeleteOptions,
  RestList,
  RestStorage,
  ServedResource,
  ServedResources,
  WriteOptions,
} from "@quorate/kube-storage";
import { ApiError, notFound, resourceName, storageWith } from "@quorate/kube-storage";
import type { Admission, AdmissionAttributes } from "../admission/admission.ts";
import { listOptions } from "./informer.ts";
import { systemContext } from "./system-context.ts";

/** Objects of a page that `each` reads. */
const PAGE_SIZE = 500;
const WRITE: WriteOptions = { dryRun: false, fieldManager: "", fieldValidation: "Ignore" };

/** One resource, or a subresource of it. */
export interface ResourceRef extends GroupVersionResource {
  readonly subresource?: string;
}

/** Makes the next version of an object; undefined leaves it as it is. */
export type Change = (present: KubeObject) => KubeObject | undefined;

export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.httpStatus === 404;
}

export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === "Conflict";
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.code === "AlreadyExists";
}

/** Thrown by a change that is not needed, to leave the update. */
class Unchanged extends ApiError {
  readonly object: KubeObject;

  constructor(object: KubeObject) {
    super(200, "", "unchanged");
    this.object = object;
  }
}

export class LocalClient {
  readonly #served: ServedResources;
  readonly #admission: Admission;
  readonly #signal: Cancellation | undefined;

  /** @param signal ends all requests */
  constructor(served: ServedResources, admission: Admission, signal?: Cancellation) {
    this.#served = served;
    this.#admission = admission;
    this.#signal = signal;
  }

  /** Undefined where there is no such object. Rejects with ApiError. */
  async get(ref: ResourceRef, namespace: string, name: string): Promise<KubeObject | undefined> {
    const storage = storageWith(this.#find(ref).storage, "get");
    try {
      const options = { resourceVersion: "" };
      return (await storage.get(this.#context(namespace), name, options)).object();
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** One page, read from the cache where it is fresh, or as of any time. */
  list(
    ref: ResourceRef,
    namespace: string,
    limit: number,
    from: { readonly continueToken?: string; readonly resourceVersion?: "" | "0" } = {},
  ): Promise<RestList> {
    const storage = storageWith(this.#find(ref).storage, "list");
    return storage.list(this.#context(namespace), listOptions({ limit, ...from }));
  }

  /** Visits all objects, page after page. @param namespace "" for all */
  async each(
    ref: ResourceRef,
    namespace: string,
    visit: (object: KubeObject) => void | Promise<void>,
  ): Promise<void> {
    let continueToken = "";
    do {
      const page = await this.list(ref, namespace, PAGE_SIZE, { continueToken });
      for (const item of page.items) await visit(item.object());
      ({ continueToken } = page);
    } while (continueToken !== "");
  }

  async create(ref: ResourceRef, namespace: string, object: KubeObject): Promise<KubeObject> {
    const resource = this.#find(ref);
    const attributes = this.#attributes(resource, "CREATE", namespace, object.metadata.name ?? "");
    const mutated = await this.#admission.mutate({ ...attributes, object });
    return storageWith(resource.storage, "create").create(
      this.#context(namespace),
      mutated ?? object,
      (it) => this.#admission.validate({ ...attributes, object: it }),
      WRITE,
    );
  }

  /** Updates the object; the change is made again after a conflict. */
  async update(
    ref: ResourceRef,
    namespace: string,
    name: string,
    change: Change,
    preconditions?: Preconditions,
  ): Promise<KubeObject> {
    const resource = this.#find(ref);
    const attributes = this.#attributes(resource, "UPDATE", namespace, name);
    const make = async (_: RequestContext, old: KubeObject | undefined): Promise<KubeObject> => {
      if (old === undefined) throw notFound(ref, name);
      const object = change(old);
      if (object === undefined) throw new Unchanged(old);
      return (await this.#admission.mutate({ ...attributes, object, oldObject: old })) ?? object;
    };
    try {
      const { object } = await storageWith(resource.storage, "update").update(
        this.#context(namespace),
        name,
        { preconditions, make },
        async () => {},
        (it, old) => this.#admission.validate({ ...attributes, object: it, oldObject: old }),
        false,
        WRITE,
      );
      return object;
    } catch (error) {
      if (error instanceof Unchanged) return error.object;
      throw error;
    }
  }

  /** @param options dryRun is false unless set */
  async delete(
    ref: ResourceRef,
    namespace: string,
    name: string,
    options: Partial<RestDeleteOptions> = {},
  ): Promise<void> {
    const resource = this.#find(ref);
    await storageWith(resource.storage, "delete").delete(
      this.#context(namespace),
      name,
      (old) => this.#admitDeletion(resource, namespace, old),
      { dryRun: false, ...options },
    );
  }

  /** Deletes all objects of a namespace; those with finalizers stay for now. */
  async deleteCollection(ref: ResourceRef, namespace: string): Promise<void> {
    const resource = this.#find(ref);
    await storageWith(resource.storage, "deleteCollection").deleteCollection(
      this.#context(namespace),
      (old) => this.#admitDeletion(resource, namespace, old),
      { dryRun: false, propagationPolicy: "Background" },
      listOptions({}),
    );
  }

  /** What the resource offers; undefined where it is not served. */
  storage(ref: ResourceRef): RestStorage | undefined {
    const { group, version, resource, subresource = "" } = ref;
    return this.#served.find(group, version, resource, subresource)?.storage;
  }

  async #admitDeletion(
    resource: ServedResource,
    namespace: string,
    oldObject: KubeObject,
  ): Promise<void> {
    const name = oldObject.metadata.name ?? "";
    const attributes = this.#attributes(resource, "DELETE", namespace, name);
    await this.#admission.mutate({ ...attributes, oldObject });
    await this.#admission.validate({ ...attributes, oldObject });
  }

  #attributes(
    resource: ServedResource,
    operation: AdmissionAttributes["operation"],
    namespace: string,
    name: string,
  ): AdmissionAttributes {
    const { kind, group, version } = resource;
    const { user, signal, warn } = this.#context(namespace);
    const options = OPTIONS_KINDS[operation];
    return {
      operation,
      user,
      kind,
      resource: { group, version, resource: resource.resource },
      subresource: resource.subresource,
      namespace,
      name,
      object: undefined,
      oldObject: undefined,
      options: { kind: options, apiVersion: "meta.k8s.io/v1" },
      dryRun: false,
      signal,
      warn,
    };
  }

  #context(namespace: string): RequestContext {
    return systemContext(namespace, this.#signal);
  }

  #find({ group, version, resource, subresource = "" }: ResourceRef): ServedResource {
    const found = this.#served.find(group, version, resource, subresource);
    if (found !== undefined) return found;
    const name = resourceName({ group, resource });
    throw new ApiError(404, "NotFound", `the server could not find the resource ${name}`);
  }
}

const OPTIONS_KINDS = {
  CREATE: "CreateOptions",
  UPDATE: "UpdateOptions",
  DELETE: "DeleteOptions",
  CONNECT: "ConnectOptions",
} as const;
