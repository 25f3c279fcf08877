/** CustomResourceDefinition as JSON (apiextensions-apiserver: pkg/apis/apiextensions/v1). */

import type {
  GroupVersionKind,
  GroupVersionResource,
  KubeObject,
  Schema,
} from "@quorate/kube-storage";
import type { WebhookClientConfig } from "../../admission/webhook-caller.ts";

export const CRD_GROUP = "apiextensions.k8s.io";
export const CRD_KIND: GroupVersionKind = {
  group: CRD_GROUP,
  version: "v1",
  kind: "CustomResourceDefinition",
};
export const CRD_RESOURCE: GroupVersionResource = {
  group: CRD_GROUP,
  version: "v1",
  resource: "customresourcedefinitions",
};
/** Holds a definition until its instances are deleted. */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

export interface CrdNames {
  readonly plural?: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly kind?: string;
  readonly listKind?: string;
  readonly categories?: readonly string[];
}

export interface PrinterColumn {
  readonly name?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
  readonly jsonPath?: string;
}

export interface ScaleSubresource {
  readonly specReplicasPath?: string;
  readonly statusReplicasPath?: string;
  readonly labelSelectorPath?: string;
}

export interface Subresources {
  readonly status?: object;
  readonly scale?: ScaleSubresource;
}

export interface SelectableField {
  readonly jsonPath?: string;
}

export interface CrdVersion {
  readonly name: string;
  readonly served?: boolean;
  readonly storage?: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema?: { readonly openAPIV3Schema?: Schema };
  readonly subresources?: Subresources;
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
  readonly selectableFields?: readonly SelectableField[];
}

export interface CrdConversion {
  readonly strategy?: string;
  readonly webhook?: {
    readonly clientConfig?: WebhookClientConfig;
    readonly conversionReviewVersions?: readonly string[];
  };
}

export interface CrdSpec {
  readonly group?: string;
  readonly names?: CrdNames;
  readonly scope?: string;
  readonly versions?: readonly CrdVersion[];
  readonly conversion?: CrdConversion;
  readonly preserveUnknownFields?: boolean;
}

export interface CrdCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly lastTransitionTime?: string | null;
  readonly reason?: string;
  readonly message?: string;
}

export interface CrdStatus {
  readonly conditions?: readonly CrdCondition[] | null;
  readonly acceptedNames?: CrdNames;
  readonly storedVersions?: readonly string[];
}

export interface Crd extends KubeObject {
  readonly spec: CrdSpec;
  readonly status?: CrdStatus;
}

/** The condition of this type. */
export function conditionOf(crd: Crd, type: string): CrdCondition | undefined {
  return crd.status?.conditions?.find((condition) => condition.type === type);
}

export function isConditionTrue(crd: Crd, type: string): boolean {
  return conditionOf(crd, type)?.status === "True";
}

/** The version whose form is stored. */
export function storageVersionOf(crd: Crd): string | undefined {
  return crd.spec.versions?.find((version) => version.storage === true)?.name;
}
