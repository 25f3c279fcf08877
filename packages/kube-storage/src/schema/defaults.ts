/**
 * Defaults of built-in kinds that depend on more than their field (kubernetes: pkg/apis/GROUP/v1/
 * defaults.go). They apply when an object is decoded, from a client or from the store. Plain
 * defaults stand in the tables.
 */
import { fromUtf8, toBase64 } from "@quorate/proto";
import {
  type Defaulter,
  type FieldValues,
  type MutableObject,
  setField,
  sortedMap,
} from "./maps.ts";
import { WORKLOAD_DEFAULTERS } from "./workload-defaults.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";

function webhook(fields: FieldValues): void {
  failClosed(fields);
  matchResources(fields);
  fields.setMissing("timeoutSeconds", 10);
}

/** Policies and the resources that they match. */
function failClosed(fields: FieldValues): void {
  fields.setMissing("failurePolicy", "Fail");
}

function matchResources(fields: FieldValues): void {
  fields.setMissing("matchPolicy", "Equivalent");
  fields.setMissing("namespaceSelector", {});
  fields.setMissing("objectSelector", {});
}

function serviceReference(fields: FieldValues): void {
  if (fields.get("port") === undefined) fields.set("port", 443);
}

function namespace(fields: FieldValues): void {
  const metadata = fields.get("metadata") as {
    name?: string;
    labels?: Record<string, string>;
  };
  if (metadata.name === undefined) return;
  const labels = sortedMap({
    ...metadata.labels,
    "kubernetes.io/metadata.name": metadata.name,
  });
  fields.set("metadata", { ...metadata, labels });
}

/** stringData is for writing only: its entries replace those of data. */
function secret(fields: FieldValues): void {
  fields.setMissing("type", "Opaque");
  const texts = fields.get("stringData") as Record<string, string> | undefined;
  if (texts === undefined) return;
  const data: MutableObject = { ...(fields.get("data") as MutableObject | undefined) };
  for (const [name, text] of Object.entries(texts)) setField(data, name, toBase64(fromUtf8(text)));
  fields.set("data", sortedMap(data));
  fields.set("stringData", undefined);
}

interface DefinitionNames {
  kind?: string;
  singular?: string;
  listKind?: string;
}

function customResourceDefinition(fields: FieldValues): void {
  const spec = fields.get("spec") as {
    names: DefinitionNames;
    versions: readonly { name: string; storage: boolean }[] | null;
    conversion?: unknown;
  };
  const { names } = spec;
  const kind = names.kind ?? "";
  fields.set("spec", {
    ...spec,
    names: {
      ...names,
      ...(names.singular === undefined && kind !== "" ? { singular: kind.toLowerCase() } : {}),
      ...(names.listKind === undefined && kind !== "" ? { listKind: `${kind}List` } : {}),
    },
    conversion: spec.conversion ?? { strategy: "None" },
  });
  const status = fields.get("status") as { storedVersions: readonly string[] | null };
  const stored = spec.versions?.find((version) => version.storage);
  if ((status.storedVersions ?? []).length === 0 && stored !== undefined)
    fields.set("status", { ...status, storedVersions: [stored.name] });
}

/** By the name of the type in the tables. */
export const DEFAULTERS: ReadonlyMap<string, Defaulter> = new Map<string, Defaulter>([
  ["core.Secret", secret],
  ["core.Namespace", namespace],
  ["core.NamespaceStatus", (fields) => fields.setMissing("phase", "Active")],
  ["rbac.RoleRef", (fields) => fields.setMissing("apiGroup", RBAC_GROUP)],
  [
    "rbac.Subject",
    (fields) => {
      if (["User", "Group"].includes(String(fields.get("kind"))))
        fields.setMissing("apiGroup", RBAC_GROUP);
    },
  ],
  ["admissionregistration.ValidatingWebhook", webhook],
  [
    "admissionregistration.MutatingWebhook",
    (fields) => {
      webhook(fields);
      fields.setMissing("reinvocationPolicy", "Never");
    },
  ],
  ["admissionregistration.RuleWithOperations", (fields) => fields.setMissing("scope", "*")],
  ["admissionregistration.NamedRuleWithOperations", (fields) => fields.setMissing("scope", "*")],
  ["admissionregistration.ValidatingAdmissionPolicySpec", failClosed],
  ["admissionregistration.MutatingAdmissionPolicySpec", failClosed],
  ["admissionregistration.MatchResources", matchResources],
  ["admissionregistration.ServiceReference", serviceReference],
  ["apiextensions.ServiceReference", serviceReference],
  ["apiextensions.CustomResourceDefinition", customResourceDefinition],
  [
    "authentication.TokenRequestSpec",
    (fields) => {
      if (fields.get("expirationSeconds") === undefined) fields.set("expirationSeconds", 3600);
    },
  ],
  ...WORKLOAD_DEFAULTERS,
]);

/** How defaults read and set the fields of an object. */
