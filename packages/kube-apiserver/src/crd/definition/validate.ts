/**
 * The rules for whole definitions (apiextensions-apiserver:
 * pkg/apis/apiextensions/validation/validation.go). They look at the stored form, whose paths the
 * errors name. An update is not judged by rules that the present definition breaks already.
 */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, sameJson } from "@quorate/kube-storage";
import type { Patterns } from "../validation/patterns.ts";
import { approvalErrors } from "./approval.ts";
import { hasKnownVersion } from "./conversion-rules.ts";
import type { DefaultRuleCheck } from "./default-rules.ts";
import { hasGranularSetItems, mapKeyErrors } from "./list-rules.ts";
import { namesErrors } from "./names-rules.ts";
import { type RawSchema, someSchema, unsupportedPart } from "./raw-schema.ts";
import { type RuleChecker, SCHEMA_TYPES } from "./schema-rules.ts";
import { type SpecOptions, specErrors } from "./spec-rules.ts";
import { type StoredSpec, toStoredSpec } from "./stored-form.ts";
import { structuralErrors } from "./structural-rules.ts";
import { type Crd, isConditionTrue } from "./types.ts";
import { MAX_SELECTABLE_FIELDS } from "./version-rules.ts";
import { isCaBundle } from "./webhook-rules.ts";

/** What the rules need besides the definition. */
export interface CrdRules {
  readonly patterns: Patterns | undefined;
  /** For one schema of one version. Undefined: rules are not compiled. */
  readonly ruleChecker: ((old: Crd | undefined) => RuleChecker) | undefined;
  readonly defaultRules: DefaultRuleCheck | undefined;
  /** Lets other work run. */
  pause(): Promise<void>;
}

/** All errors of a new definition besides those of its metadata; its name is judged here. */
export async function crdErrors(crd: Crd, rules: CrdRules): Promise<FieldError[]> {
  const spec = toStoredSpec(crd.spec);
  const options: SpecOptions = {
    knownReviewVersion: true,
    openApiSchema: true,
    validTypes: true,
    structural: true,
    prunedDefaults: true,
    atomicSets: true,
    mapKeys: true,
    anyCaBundle: true,
    manySelectable: new Set(),
    unchanged: new Set(),
    patterns: rules.patterns,
    rules: rules.ruleChecker?.(undefined),
    defaultRules: rules.defaultRules,
    pause: rules.pause,
  };
  const wanted = `${spec.names?.plural ?? ""}.${spec.group ?? ""}`;
  return [
    ...nameErrors(crd, wanted),
    ...(await specErrors(spec, "spec", options)),
    ...statusErrors(crd),
    ...storedVersionErrors(crd, spec),
    ...approvalErrors(crd, undefined, spec.group ?? ""),
    ...preserveErrors(spec, undefined),
  ];
}

/** All errors of a changed definition. */
export async function crdUpdateErrors(crd: Crd, old: Crd, rules: CrdRules): Promise<FieldError[]> {
  const spec = toStoredSpec(crd.spec);
  const oldSpec = toStoredSpec(old.spec);
  const options: SpecOptions = {
    ...presentLaxity(oldSpec, old, rules.patterns),
    manySelectable: manySelectable(spec, oldSpec),
    unchanged: unchangedVersions(crd, old),
    patterns: rules.patterns,
    rules: rules.ruleChecker?.(old),
    defaultRules: rules.defaultRules,
    pause: rules.pause,
  };
  return [
    ...(await specErrors(spec, "spec", options)),
    ...immutableErrors(spec, oldSpec, isConditionTrue(old, "Established")),
    ...statusErrors(crd),
    ...storedVersionErrors(crd, spec),
    ...approvalErrors(crd, old, spec.group ?? ""),
    ...preserveErrors(spec, oldSpec),
  ];
}

function nameErrors({ metadata }: Crd, wanted: string): FieldError[] {
  // That there is none is another error.
  if (metadata.name === wanted || (metadata.name ?? "") === "") return [];
  const detail = 'must be spec.names.plural+"."+spec.group';
  return [invalidValue("metadata.name", metadata.name ?? "", detail)];
}

/** All errors of a status. */
export function statusErrors(crd: Crd): FieldError[] {
  return namesErrors(crd.status?.acceptedNames ?? {}, "status.acceptedNames");
}

/** The version that is stored is listed, and every listed one is defined. */
export function storedVersionErrors(crd: Crd, spec: StoredSpec): FieldError[] {
  const stored = crd.status?.storedVersions ?? [];
  const path = "status.storedVersions";
  if (stored.length === 0) {
    const value = crd.status?.storedVersions ?? null;
    return [invalidValue(path, value, "must have at least one stored version")];
  }
  const versions = spec.versions ?? [];
  const names = new Set(versions.map(({ name }) => name));
  const storedNames = new Set(stored);
  const errors = versions
    .filter((version) => version.storage === true && !storedNames.has(version.name))
    .map((version) => invalidValue(path, stored, `must have the storage version ${version.name}`));
  for (const [i, name] of stored.entries()) {
    if (names.has(name)) continue;
    const detail =
      `missing from spec.versions; ${name} was previously a storage version, and must remain in ` +
      `spec.versions until a storage migration ensures no data remains persisted in ${name} and ` +
      `removes ${name} from status.storedVersions`;
    errors.push(invalidValue(`${path}[${i}]`, name, detail));
  }
  return errors;
}

function preserveErrors(spec: StoredSpec, old: StoredSpec | undefined): FieldError[] {
  if (old?.preserveUnknownFields === true || spec.preserveUnknownFields !== true) return [];
  const detail =
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in " +
    "spec.versions[*].schema instead";
  return [invalidValue("spec.preserveUnknownFields", true, detail)];
}

function immutableErrors(spec: StoredSpec, old: StoredSpec, established: boolean): FieldError[] {
  const fields: [path: string, value: unknown, before: unknown][] = [
    ["spec.group", spec.group ?? "", old.group ?? ""],
    ["spec.names.plural", spec.names?.plural ?? "", old.names?.plural ?? ""],
  ];
  if (established) {
    fields.unshift(
      ["spec.scope", spec.scope ?? "", old.scope ?? ""],
      ["spec.names.kind", spec.names?.kind ?? "", old.names?.kind ?? ""],
    );
  }
  return fields
    .filter(([, value, before]) => value !== before)
    .map(([path, value]) => invalidValue(path, value, "field is immutable"));
}

/** The schemas of all versions. */
function schemasOf(spec: StoredSpec): RawSchema[] {
  const all = [spec.validation, ...(spec.versions ?? []).map((version) => version.schema)];
  return all.flatMap((one) => (one?.openAPIV3Schema === undefined ? [] : [one.openAPIV3Schema]));
}

/** Rules that the present definition breaks are not demanded of its successor. */
function presentLaxity(old: StoredSpec, crd: Crd, patterns: Patterns | undefined) {
  const schemas = schemasOf(old);
  const some = (check: (schema: RawSchema) => boolean) =>
    schemas.some((schema) => someSchema(schema, check));
  const config = old.conversion?.webhookClientConfig;
  const caBundle = config?.caBundle ?? "";
  return {
    knownReviewVersion: hasKnownVersion(old.conversion?.conversionReviewVersions),
    openApiSchema:
      old.validation?.openAPIV3Schema !== undefined ||
      (old.versions ?? []).every((version) => version.schema?.openAPIV3Schema !== undefined),
    validTypes: !some(({ type = "" }) => type !== "" && !SCHEMA_TYPES.includes(type)),
    structural: !schemas.some(
      (schema) =>
        unsupportedPart(schema) !== undefined || structuralErrors(schema, "", patterns).length > 0,
    ),
    prunedDefaults: true,
    atomicSets: !some(hasGranularSetItems),
    mapKeys: !some((schema) => mapKeyErrors(schema, "").length > 0),
    anyCaBundle: !isConditionTrue(crd, "Established") || (caBundle !== "" && !isCaBundle(caBundle)),
  };
}

/** The names of versions with too many selectable fields already; "" for the top of the spec. */
function manySelectable(spec: StoredSpec, old: StoredSpec): Set<string> {
  const names = new Set<string>();
  const same = (now: unknown, before: readonly unknown[] | undefined) =>
    (before?.length ?? 0) > MAX_SELECTABLE_FIELDS && sameJson(now, before);
  if (same(spec.selectableFields, old.selectableFields)) names.add("");
  for (const version of spec.versions ?? []) {
    const before = old.versions?.find(({ name }) => name === version.name);
    if (same(version.selectableFields, before?.selectableFields)) names.add(version.name);
  }
  return names;
}

/** The names of versions whose schemas are as they were. */
function unchangedVersions(crd: Crd, old: Crd): Set<string> {
  const names = (crd.spec.versions ?? [])
    .filter((version) => {
      const before = old.spec.versions?.find(({ name }) => name === version.name);
      return before !== undefined && sameJson(version.schema ?? null, before.schema ?? null);
    })
    .map((version) => version.name);
  return new Set(names);
}
