/** The collector's requests: live reads by identity, deletions and changes of owner references. */

import type {
  DeletionPropagation,
  KubeObject,
  OwnerReference,
  ServedResource,
  ServedResources,
} from "@quorate/kube-storage";
import { parseApiVersion, withMetadata } from "@quorate/kube-storage";
import { isNotFound, type LocalClient } from "../informers/local-client.ts";
import type { Identity } from "./gc-graph.ts";

/** What a look-up found. */
export type Found = KubeObject | "absent" | "unknown-kind" | "namespaced-owner";

export class GcObjects {
  readonly #client: LocalClient;
  readonly #served: ServedResources;

  constructor(client: LocalClient, served: ServedResources) {
    this.#client = client;
    this.#served = served;
  }

  /** The object itself; "absent" also where another one has its name now. */
  async get(identity: Identity): Promise<Found> {
    const resource = this.resourceOf(identity);
    if (resource === undefined) return "unknown-kind";
    // An object outside of namespaces cannot have an owner in one.
    if (resource.namespaced && identity.namespace === "") return "namespaced-owner";
    const namespace = resource.namespaced ? identity.namespace : "";
    const found = await this.#client.get(resource, namespace, identity.name);
    return found === undefined || found.metadata.uid !== identity.uid ? "absent" : found;
  }

  /** The owner that a reference of an object in `namespace` ("" for none) names. */
  owner({ apiVersion, kind, name, uid }: OwnerReference, namespace: string): Promise<Found> {
    return this.get({ apiVersion, kind, namespace, name, uid });
  }

  /** Resolves also where the object is gone, or is another one now. */
  async delete(object: KubeObject, propagationPolicy: DeletionPropagation): Promise<void> {
    const { namespace = "", name = "", uid, resourceVersion } = object.metadata;
    const resource = this.resourceOf(object);
    if (resource === undefined) return;
    const preconditions = { uid, resourceVersion };
    try {
      await this.#client.delete(resource, namespace, name, { propagationPolicy, preconditions });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Changes metadata of the object, if it is still the same one. */
  async update(
    identity: Identity,
    change: (object: KubeObject) => KubeObject | undefined,
  ): Promise<void> {
    const resource = this.resourceOf(identity);
    if (resource === undefined) return;
    const namespace = resource.namespaced ? identity.namespace : "";
    try {
      await this.#client.update(resource, namespace, identity.name, (present) =>
        present.metadata.uid === identity.uid ? change(present) : undefined,
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** The resource of a kind, in its version or in any other one. */
  resourceOf({ apiVersion, kind }: { apiVersion: string; kind: string }) {
    const of = parseApiVersion(apiVersion);
    if (of === undefined) return undefined;
    const isKind = (one: ServedResource): boolean =>
      one.subresource === "" && one.kind.kind === kind && one.kind.group === of.group;
    const all = this.#served.all().filter(isKind);
    return all.find(({ version }) => version === of.version) ?? all[0];
  }
}

/** Without the references to these owners; undefined where there are none. */
export function withoutOwners(
  object: KubeObject,
  uids: ReadonlySet<string>,
): KubeObject | undefined {
  const references = object.metadata.ownerReferences ?? [];
  const kept = references.filter(({ uid }) => !uids.has(uid));
  if (kept.length === references.length) return undefined;
  return withMetadata(object, { ownerReferences: kept.length === 0 ? undefined : kept });
}

/** Without a finalizer; undefined where it has none. */
export function withoutFinalizer(object: KubeObject, finalizer: string): KubeObject | undefined {
  const finalizers = object.metadata.finalizers ?? [];
  const kept = finalizers.filter((one) => one !== finalizer);
  if (kept.length === finalizers.length) return undefined;
  return withMetadata(object, { finalizers: kept.length === 0 ? undefined : kept });
}

/** With references that block no deletion; undefined where none did. */
export function unblocked(object: KubeObject): KubeObject | undefined {
  const references = object.metadata.ownerReferences ?? [];
  if (!references.some(({ blockOwnerDeletion }) => blockOwnerDeletion)) return undefined;
  const ownerReferences = references.map((one) => ({ ...one, blockOwnerDeletion: false }));
  return withMetadata(object, { ownerReferences });
}
