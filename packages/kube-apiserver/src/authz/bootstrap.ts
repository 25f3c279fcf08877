/**
 * Creates the default roles and bindings when a server starts, and adds what is missing in those
 * that exist (Kubernetes: pkg/registry/rbac/rest, component-helpers auth/rbac/reconciliation).
 * Nothing is taken away; the annotation autoupdate "false" keeps an object as it is.
 */

import { type KubeObject, semanticEqual } from "@quorate/kube-storage";
import {
  type Change,
  isAlreadyExists,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";
import {
  AUTOUPDATE_ANNOTATION,
  bootstrapClusterRoleBindings,
  bootstrapClusterRoles,
  bootstrapRoles,
} from "./bootstrap-policy.ts";
import { missingRights } from "./escalation.ts";
import { aggregationSelectors } from "./rbac-validation.ts";
import { RBAC_GROUP, rulesOf, subjectsOf } from "./rules.ts";

const rbac = (resource: string): ResourceRef => ({ group: RBAC_GROUP, version: "v1", resource });

/** Rejects with ApiError; call it again then. Namespaces must exist. */
export async function reconcileDefaultPolicy(client: LocalClient): Promise<void> {
  // The three do not depend on each other, and a server's start should not take long.
  await Promise.all([
    reconcileAll(client, rbac("clusterroles"), bootstrapClusterRoles(), withRole),
    reconcileAll(client, rbac("clusterrolebindings"), bootstrapClusterRoleBindings(), withSubjects),
    reconcileAll(client, rbac("roles"), bootstrapRoles(), withRole),
  ]);
}

type Reconcile = (present: KubeObject, wanted: KubeObject) => KubeObject | undefined;

/** @param defaults in one namespace, or outside of all */
async function reconcileAll(
  client: LocalClient,
  ref: ResourceRef,
  defaults: readonly KubeObject[],
  reconciled: Reconcile,
): Promise<void> {
  const namespace = defaults[0]?.metadata.namespace ?? "";
  const list = await client.list(ref, namespace, 0);
  const present = new Map(list.items.map((item) => [item.object().metadata.name, item.object()]));
  await Promise.all(
    defaults.map((wanted) =>
      reconcile(client, ref, wanted, present.get(wanted.metadata.name), (it) =>
        reconciled(it, wanted),
      ),
    ),
  );
}

async function reconcile(
  client: LocalClient,
  ref: ResourceRef,
  wanted: KubeObject,
  present: KubeObject | undefined,
  change: Change,
): Promise<void> {
  const { namespace = "", name = "" } = wanted.metadata;
  if (present === undefined) {
    try {
      await client.create(ref, namespace, wanted);
      return;
    } catch (error) {
      // Another server was first.
      if (!isAlreadyExists(error)) throw error;
    }
  } else if (change(present) === undefined) return;
  await client.update(ref, namespace, name, change);
}

function withRole(present: KubeObject, wanted: KubeObject): KubeObject | undefined {
  const marked = withMarks(present, wanted);
  if (marked === undefined) return undefined;
  const missing = missingRights(rulesOf(present), rulesOf(wanted));
  const rules = missing.length === 0 ? {} : { rules: [...rulesOf(present), ...missing] };
  return changed(present, { ...marked, ...rules, ...aggregationOf(present, wanted) });
}

function aggregationOf(present: KubeObject, wanted: KubeObject): Record<string, unknown> {
  const selectors = aggregationSelectors(wanted);
  const own = aggregationSelectors(present);
  if (selectors === undefined) return own === undefined ? {} : { aggregationRule: undefined };
  const missing = selectors.filter(
    (one) => !(own ?? []).some((other) => semanticEqual(one, other)),
  );
  if (missing.length === 0) return {};
  return { aggregationRule: { clusterRoleSelectors: [...(own ?? []), ...missing] } };
}

function withSubjects(present: KubeObject, wanted: KubeObject): KubeObject | undefined {
  const marked = withMarks(present, wanted);
  // Another role cannot be set; such a binding is not the default one.
  if (marked === undefined || !semanticEqual(present["roleRef"], wanted["roleRef"]))
    return undefined;
  const own = subjectsOf(present);
  const missing = subjectsOf(wanted).filter(
    (one) => !own.some((other) => semanticEqual(one, other)),
  );
  const subjects = missing.length === 0 ? {} : { subjects: [...own, ...missing] };
  return changed(present, { ...marked, ...subjects });
}

/** With the default labels and annotations; what the object has wins. Undefined: protected. */
function withMarks(present: KubeObject, wanted: KubeObject): KubeObject | undefined {
  const { labels, annotations } = present.metadata;
  if (annotations?.[AUTOUPDATE_ANNOTATION] === "false") return undefined;
  const metadata = {
    ...present.metadata,
    labels: { ...wanted.metadata.labels, ...labels },
    annotations: { ...wanted.metadata.annotations, ...annotations },
  };
  return { ...present, metadata };
}

function changed(present: KubeObject, next: KubeObject): KubeObject | undefined {
  return semanticEqual(present, next) ? undefined : next;
}
