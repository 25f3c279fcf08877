/**
 * OwnerReferencesPermissionEnforcement (Kubernetes: plugin/pkg/admission/gc): who sets an owner
 * reference lets the collector delete the object, so they must be allowed to delete it; who blocks
 * the deletion of an owner must be allowed to set its finalizers. Off unless enabled.
 */

import type {
  KubeObject,
  OwnerReference,
  ServedResource,
  ServedResources,
} from "@quorate/kube-storage";
import { parseApiVersion, semanticEqual } from "@quorate/kube-storage";
import type { Authorizer, AuthorizerAttributes } from "../authz/authorizer.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";

export function ownerReferencesPermission(
  authorizer: Authorizer,
  served: ServedResources,
): AdmissionPlugin {
  return {
    async validate(attributes) {
      const { operation, object, oldObject } = attributes;
      if (operation !== "CREATE" && operation !== "UPDATE") return;
      const refs = refsOf(object);
      const before = refsOf(oldObject);
      if (semanticEqual(refs, before)) return;
      if (operation !== "CREATE") await checkDelete(attributes, authorizer);
      const blocking = refs.filter(
        (ref) => ref.blockOwnerDeletion === true && !wasBlocking(ref, before),
      );
      if (blocking.length === 0) return;
      const { decision } = await authorizer.authorize(
        finalizersOf(attributes, { group: "*", version: "*", resource: "*", name: "*" }),
      );
      if (decision === "allow") return;
      for (const ref of blocking) await checkOwner(attributes, ref, authorizer, served);
    },
  };
}

function refsOf(object: KubeObject | undefined): readonly OwnerReference[] {
  return object?.metadata.ownerReferences ?? [];
}

function wasBlocking({ uid }: OwnerReference, before: readonly OwnerReference[]): boolean {
  return before.some((old) => old.uid === uid && old.blockOwnerDeletion === true);
}

async function checkDelete(attributes: AdmissionAttributes, authorizer: Authorizer): Promise<void> {
  const { user, namespace, resource, subresource, name } = attributes;
  const { decision, reason } = await authorizer.authorize({
    ...resource,
    user,
    verb: "delete",
    isResourceRequest: true,
    namespace,
    subresource,
    name,
    path: "",
  });
  if (decision === "allow") return;
  const why = "cannot set an ownerRef on a resource you can't delete";
  throw admissionForbidden(attributes, `${why}: ${reason}, <nil>`);
}

async function checkOwner(
  attributes: AdmissionAttributes,
  ref: OwnerReference,
  authorizer: Authorizer,
  served: ServedResources,
): Promise<void> {
  const owners = resourcesOf(ref, served);
  if (owners.length === 0) {
    const { apiVersion, kind } = ref;
    throw admissionForbidden(
      attributes,
      "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion " +
        `${apiVersion} Kind ${kind}: no matches for kind "${kind}" in version "${apiVersion}"`,
    );
  }
  for (const { group, version, resource, namespaced } of owners) {
    const of = finalizersOf(attributes, { group, version, resource, name: ref.name });
    const namespace = namespaced ? attributes.namespace : "";
    const { decision, reason } = await authorizer.authorize({ ...of, namespace });
    if (decision === "allow") continue;
    const why =
      "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set " +
      "finalizers on";
    throw admissionForbidden(attributes, `${why}: ${reason}, <nil>`);
  }
}

function resourcesOf(ref: OwnerReference, served: ServedResources): readonly ServedResource[] {
  const of = parseApiVersion(ref.apiVersion);
  return served.all().filter(({ kind, group, version, subresource }) => {
    if (subresource !== "" || kind.kind !== ref.kind) return false;
    return group === of?.group && version === of.version;
  });
}

function finalizersOf(
  { user }: AdmissionAttributes,
  of: Pick<AuthorizerAttributes, "group" | "version" | "resource" | "name">,
): AuthorizerAttributes {
  return {
    ...of,
    user,
    verb: "update",
    isResourceRequest: true,
    namespace: "",
    subresource: "finalizers",
    path: "",
  };
}
