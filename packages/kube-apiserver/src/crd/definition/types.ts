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
  readonly plural?: string | undefined;
  readonly singular?: string | undefined;
  readonly shortNames?: readonly string[] | undefined;
  readonly kind?: string | undefined;
  readonly listKind?: string | undefined;
  readonly categories?: readonly string[] | undefined;
}

export interface PrinterColumn {
  readonly name?: string | undefined;
  readonly type?: string | undefined;
  readonly format?: string | undefined;
  readonly description?: string | undefined;
  readonly priority?: number | undefined;
  readonly jsonPath?: string | undefined;
}

export interface ScaleSubresource {
  readonly specReplicasPath?: string | undefined;
  readonly statusReplicasPath?: string | undefined;
  readonly labelSelectorPath?: string | undefined;
}

export interface Subresources {
  readonly status?: object | undefined;
  readonly scale?: ScaleSubresource | undefined;
}

export interface SelectableField {
  readonly jsonPath?: string | undefined;
}

export interface CrdVersion {
  readonly name: string;
  readonly served?: boolean | undefined;
  readonly storage?: boolean | undefined;
  readonly deprecated?: boolean | undefined;
  readonly deprecationWarning?: string | undefined;
  readonly schema?: { readonly openAPIV3Schema?: Schema } | undefined;
  readonly subresources?: Subresources | undefined;
  readonly additionalPrinterColumns?: readonly PrinterColumn[] | undefined;
  readonly selectableFields?: readonly SelectableField[] | undefined;
}

export interface CrdConversion {
  readonly strategy?: string | undefined;
  readonly webhook?: {
    readonly clientConfig?: WebhookClientConfig | undefined;
    readonly conversionReviewVersions?: readonly string[] | undefined;
  };
}

export interface CrdSpec {
  readonly group?: string | undefined;
  readonly names?: CrdNames | undefined;
  readonly scope?: string | undefined;
  readonly versions?: readonly CrdVersion[] | undefined;
  readonly conversion?: CrdConversion | undefined;
  readonly preserveUnknownFields?: boolean | undefined;
}

export interface CrdCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly lastTransitionTime?: string | null | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

export interface CrdStatus {
  readonly conditions?: readonly CrdCondition[] | null | undefined;
  readonly acceptedNames?: CrdNames | undefined;
  readonly storedVersions?: readonly string[] | undefined;
}

export interface Crd extends KubeObject {
  readonly spec: CrdSpec;
  readonly status?: CrdStatus | undefined;
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
