/**
 * Go's packages of API types, each with its tables. A new kind is one entry in the table of its
 * package; a new package is one line here.
 */
import { admissionTypes } from "./tables/admission.ts";
import { admissionregistrationTypes } from "./tables/admissionregistration.ts";
import { apiextensionsTypes } from "./tables/apiextensions.ts";
import { appsTypes } from "./tables/apps.ts";
import { authenticationTypes } from "./tables/authentication.ts";
import { authorizationTypes } from "./tables/authorization.ts";
import { autoscalingTypes } from "./tables/autoscaling.ts";
import { batchTypes } from "./tables/batch.ts";
import { coordinationTypes } from "./tables/coordination.ts";
import { coreTypes } from "./tables/core.ts";
import { coreClusterTypes } from "./tables/core-cluster.ts";
import { corePodsTypes } from "./tables/core-pods.ts";
import { coreVolumesTypes } from "./tables/core-volumes.ts";
import { discoveryTypes } from "./tables/discovery.ts";
import { eventsTypes } from "./tables/events.ts";
import { metaTypes } from "./tables/meta.ts";
import { networkingTypes } from "./tables/networking.ts";
import { policyTypes } from "./tables/policy.ts";
import { rbacTypes } from "./tables/rbac.ts";
import { schedulingTypes } from "./tables/scheduling.ts";
import { storageTypes } from "./tables/storage.ts";

export interface TypePackage {
  /** The name of the package in tables, such as "core" in "core.ObjectReference". */
  readonly alias: string;
  /** The API group of its kinds. */
  readonly group: string;
  readonly version: string;
  /** In Go's type names and errors. */
  readonly goName: string;
  /** Before a type's name in OpenAPI documents. */
  readonly definitionPrefix: string;
  readonly tables: readonly string[];
}

function apiPackage(alias: string, group: string, ...tables: readonly string[]): TypePackage {
  const definitionPrefix = `io.k8s.api.${alias}.v1.`;
  return { alias, group, version: "v1", goName: "v1", definitionPrefix, tables };
}

const MACHINERY = "io.k8s.apimachinery.pkg.";

/** A package whose types are all custom ones: no kinds and no tables. */
function customPackage(alias: string, path: string, goName: string): TypePackage {
  return { alias, group: "", version: "", goName, definitionPrefix: MACHINERY + path, tables: [] };
}

export const TYPE_PACKAGES: readonly TypePackage[] = [
  apiPackage("core", "", coreTypes, corePodsTypes, coreVolumesTypes, coreClusterTypes),
  { ...apiPackage("meta", "", metaTypes), definitionPrefix: `${MACHINERY}apis.meta.v1.` },
  apiPackage("admission", "admission.k8s.io", admissionTypes),
  apiPackage("admissionregistration", "admissionregistration.k8s.io", admissionregistrationTypes),
  {
    ...apiPackage("apiextensions", "apiextensions.k8s.io", apiextensionsTypes),
    definitionPrefix: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
  },
  apiPackage("apps", "apps", appsTypes),
  apiPackage("authentication", "authentication.k8s.io", authenticationTypes),
  apiPackage("authorization", "authorization.k8s.io", authorizationTypes),
  apiPackage("autoscaling", "autoscaling", autoscalingTypes),
  apiPackage("batch", "batch", batchTypes),
  apiPackage("coordination", "coordination.k8s.io", coordinationTypes),
  apiPackage("discovery", "discovery.k8s.io", discoveryTypes),
  apiPackage("events", "events.k8s.io", eventsTypes),
  apiPackage("networking", "networking.k8s.io", networkingTypes),
  apiPackage("policy", "policy", policyTypes),
  apiPackage("rbac", "rbac.authorization.k8s.io", rbacTypes),
  apiPackage("scheduling", "scheduling.k8s.io", schedulingTypes),
  apiPackage("storage", "storage.k8s.io", storageTypes),
  customPackage("runtime", "runtime.", "runtime"),
  customPackage("resource", "api.resource.", "resource"),
  customPackage("intstr", "util.intstr.", "intstr"),
  customPackage("types", "types.", "types"),
];
