/**
 * The form in which definitions are stored and validated: v1beta1, as kube-apiserver stores them
 * (kubernetes: pkg/controlplane/apiserver/apiextensions.go). What is the same in all versions is at
 * the top of the spec, and paths of errors name that place.
 *
 *     v1       spec.versions[0].schema, spec.conversion.webhook.clientConfig, jsonPath
 *     v1beta1  spec.validation,         spec.conversion.webhookClientConfig,  JSONPath
 */

import type { KubeObject, Schema } from "@quorate/kube-storage";
import { sameJson } from "@quorate/kube-storage";
import type { WebhookClientConfig } from "../../admission/webhook-caller.ts";
import type {
  Crd,
  CrdConversion,
  CrdNames,
  CrdSpec,
  CrdStatus,
  CrdVersion,
  PrinterColumn,
  SelectableField,
  Subresources,
} from "./types.ts";

/** A printer column of v1beta1, whose path has another name. */
export type StoredColumn = Omit<PrinterColumn, "jsonPath"> & {
  readonly JSONPath?: string | undefined;
};

/** What versions may have in common. */
export interface StoredCommon {
  readonly validation?: { readonly openAPIV3Schema?: Schema } | undefined;
  readonly subresources?: Subresources | undefined;
  readonly additionalPrinterColumns?: readonly StoredColumn[] | undefined;
  readonly selectableFields?: readonly SelectableField[] | undefined;
}

export type StoredVersion = Omit<CrdVersion, "additionalPrinterColumns"> & {
  readonly additionalPrinterColumns?: readonly StoredColumn[] | undefined;
};

export interface StoredConversion {
  readonly strategy?: string | undefined;
  readonly webhookClientConfig?: WebhookClientConfig | undefined;
  readonly conversionReviewVersions?: readonly string[] | undefined;
}

export interface StoredSpec extends StoredCommon {
  readonly group?: string | undefined;
  readonly version?: string | undefined;
  readonly names?: CrdNames | undefined;
  readonly scope?: string | undefined;
  readonly versions?: readonly StoredVersion[] | undefined;
  readonly conversion?: StoredConversion | undefined;
  readonly preserveUnknownFields?: boolean | undefined;
}

export interface StoredCrd extends KubeObject {
  readonly spec: StoredSpec;
  readonly status?: CrdStatus | undefined;
}

const STORED_API_VERSION = "apiextensions.k8s.io/v1beta1";

/** The same object without fields that are undefined. */
function compact<T extends object>(object: T): T {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as T;
}

export function toStored(crd: Crd): StoredCrd {
  return { ...crd, apiVersion: STORED_API_VERSION, spec: toStoredSpec(crd.spec) };
}

/** Reads either form. */
export function fromStored(object: KubeObject): Crd {
  if (object.apiVersion !== STORED_API_VERSION) return object as Crd;
  const stored = object as StoredCrd;
  return { ...stored, apiVersion: "apiextensions.k8s.io/v1", spec: fromStoredSpec(stored.spec) };
}

export function toStoredSpec(spec: CrdSpec): StoredSpec {
  const { group, names, scope, conversion, preserveUnknownFields = false } = spec;
  const versions = (spec.versions ?? []).map(toStoredVersion);
  const first: StoredVersion | undefined = versions[0];
  const common: Record<string, unknown> = {};
  for (const [own, top] of COMMON) {
    if (
      first === undefined ||
      !versions.every((v) => sameJson(v[own] ?? null, first[own] ?? null))
    ) {
      continue;
    }
    common[top] = first[own];
    for (const version of versions) delete (version as Record<string, unknown>)[own];
  }
  return compact({
    group,
    version: first?.name,
    names,
    scope,
    ...(common as StoredCommon),
    // None at all is not the same as an empty list, as Go shows it.
    versions: spec.versions == null ? undefined : versions,
    conversion: conversion && toStoredConversion(conversion),
    preserveUnknownFields,
  });
}

/** A version's field, and its place at the top. */
const COMMON = [
  ["schema", "validation"],
  ["subresources", "subresources"],
  ["additionalPrinterColumns", "additionalPrinterColumns"],
  ["selectableFields", "selectableFields"],
] as const;

function toStoredVersion(version: CrdVersion): StoredVersion {
  const { additionalPrinterColumns, ...rest } = version;
  const columns = additionalPrinterColumns?.map(({ jsonPath, ...column }) =>
    compact({ ...column, JSONPath: jsonPath }),
  );
  return compact({ ...rest, additionalPrinterColumns: columns });
}

function toStoredConversion({ strategy, webhook }: CrdConversion): StoredConversion {
  return compact({
    strategy,
    webhookClientConfig: webhook?.clientConfig,
    conversionReviewVersions: webhook?.conversionReviewVersions,
  });
}

function fromStoredSpec(spec: StoredSpec): CrdSpec {
  const { group, names, scope, conversion, preserveUnknownFields } = spec;
  const named: readonly StoredVersion[] =
    spec.versions !== undefined && spec.versions.length > 0
      ? spec.versions
      : [{ name: spec.version ?? "", served: true, storage: true }];
  const versions = named.map((version) =>
    fromStoredVersion(
      compact({
        ...version,
        schema: spec.validation ?? version.schema,
        subresources: spec.subresources ?? version.subresources,
        additionalPrinterColumns: spec.additionalPrinterColumns ?? version.additionalPrinterColumns,
        selectableFields: spec.selectableFields ?? version.selectableFields,
      }),
    ),
  );
  return compact({
    group,
    names,
    scope,
    versions,
    conversion: conversion && fromStoredConversion(conversion),
    // v1beta1's default is true; v1 leaves false out.
    preserveUnknownFields: preserveUnknownFields === false ? undefined : true,
  });
}

function fromStoredVersion(version: StoredVersion): CrdVersion {
  const { additionalPrinterColumns, ...rest } = version;
  const columns = additionalPrinterColumns?.map(({ JSONPath, ...column }) =>
    compact({ ...column, jsonPath: JSONPath }),
  );
  return compact({ ...rest, additionalPrinterColumns: columns });
}

function fromStoredConversion(conversion: StoredConversion): CrdConversion {
  const { strategy, webhookClientConfig, conversionReviewVersions } = conversion;
  if (webhookClientConfig === undefined && conversionReviewVersions === undefined) {
    return compact({ strategy });
  }
  const webhook = compact({ clientConfig: webhookClientConfig, conversionReviewVersions });
  return compact({ strategy, webhook });
}
