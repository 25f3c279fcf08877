/** The rules for the spec of a definition, in its stored form. */
import {
  type FieldError,
  fieldForbidden,
  invalidValue,
  isDns1035Label,
  isDns1123Subdomain,
  notSupported,
  required,
  type Schema,
  sameJson,
} from "@quorate/kube-storage";
import { at, child } from "../schema/paths.ts";
import type { Patterns } from "../validation/patterns.ts";
import { conversionErrors } from "./conversion-rules.ts";
import { type DefaultRuleCheck, defaultErrors } from "./default-rules.ts";
import { missingNames, namesErrors } from "./names-rules.ts";
import {
  isTooDeep,
  MAX_SCHEMA_DEPTH,
  type RawSchema,
  someSchema,
  unsupportedPart,
} from "./raw-schema.ts";
import { type RuleChecker, schemaErrors } from "./schema-rules.ts";
import type { StoredCommon, StoredSpec, StoredVersion } from "./stored-form.ts";
import { structuralErrors } from "./structural-rules.ts";
import type { Subresources } from "./types.ts";
import {
  columnErrors,
  deprecationErrors,
  selectableFieldErrors,
  subresourceErrors,
} from "./version-rules.ts";

/** Which rules apply; what the present definition breaks is not demanded in an update. */
export interface SpecOptions {
  readonly knownReviewVersion: boolean;
  readonly openApiSchema: boolean;
  readonly validTypes: boolean;
  readonly structural: boolean;
  readonly prunedDefaults: boolean;
  readonly atomicSets: boolean;
  readonly mapKeys: boolean;
  readonly anyCaBundle: boolean;
  /** Versions that may keep too many selectable fields; "" for the top of the spec. */
  readonly manySelectable: ReadonlySet<string>;
  /** Versions whose schemas are as they were. */
  readonly unchanged: ReadonlySet<string>;
  readonly patterns: Patterns | undefined;
  readonly rules: RuleChecker | undefined;
  readonly defaultRules: DefaultRuleCheck | undefined;
  /** Lets other work run: a large schema is walked several times. */
  pause(): Promise<void>;
}

export async function specErrors(
  spec: StoredSpec,
  path: string,
  given: SpecOptions,
): Promise<FieldError[]> {
  const options = { ...given, structural: given.structural || needsStructure(spec) };
  return [
    ...groupErrors(spec.group ?? "", child(path, "group")),
    ...scopeErrors(spec.scope ?? "", child(path, "scope")),
    ...missingSchemas(spec, path, options),
    ...defaultsNeedPruning(spec, path),
    ...(await versionListErrors(spec, path, options)),
    ...commonErrors(spec, path),
    ...storageErrors(spec, path),
    ...missingNames(spec.names ?? {}, child(path, "names")),
    ...namesErrors(spec.names ?? {}, child(path, "names")),
    ...(await topErrors(spec, path, options)),
    ...preservedConversion(spec, path),
    ...conversionErrors(spec.conversion, child(path, "conversion"), {
      knownVersion: options.knownReviewVersion,
      anyCaBundle: options.anyCaBundle,
    }),
  ];
}

function allSchemas(spec: StoredSpec): RawSchema[] {
  const all = [spec.validation, ...(spec.versions ?? []).map((version) => version.schema)];
  return all.flatMap((one) => (one?.openAPIV3Schema === undefined ? [] : [one.openAPIV3Schema]));
}

function hasDefaults(spec: StoredSpec): boolean {
  const isSet = (schema: RawSchema) => (schema.default ?? null) !== null;
  return allSchemas(spec).some((schema) => !isTooDeep(schema) && someSchema(schema, isSet));
}

function needsStructure(spec: StoredSpec): boolean {
  return spec.preserveUnknownFields !== true || hasDefaults(spec);
}

function groupErrors(group: string, path: string): FieldError[] {
  if (group === "") return [required(path)];
  const texts = isDns1123Subdomain(group);
  if (texts.length > 0) return [invalidValue(path, group, texts.join(","))];
  if (group.includes(".")) return [];
  return [invalidValue(path, group, "should be a domain with at least one dot")];
}

function scopeErrors(scope: string, path: string): FieldError[] {
  const scopes = ["Cluster", "Namespaced"];
  if (scope === "") return [required(path)];
  return scopes.includes(scope) ? [] : [notSupported(path, scope, scopes)];
}

function missingSchemas(spec: StoredSpec, path: string, options: SpecOptions): FieldError[] {
  if (spec.validation?.openAPIV3Schema !== undefined) return [];
  const errors: FieldError[] = [];
  for (const [i, version] of (spec.versions ?? []).entries()) {
    if (version.schema?.openAPIV3Schema !== undefined) continue;
    const where = child(at(child(path, "versions"), i), "schema.openAPIV3Schema");
    if (options.openApiSchema) errors.push(required(where));
    else if (spec.preserveUnknownFields !== true && version.served === true) {
      errors.push(required(where, "because otherwise all fields are pruned"));
    }
  }
  return errors;
}

function defaultsNeedPruning(spec: StoredSpec, path: string): FieldError[] {
  if (spec.preserveUnknownFields !== true || !hasDefaults(spec)) return [];
  const detail = "must be false in order to use defaults in the schema";
  return [invalidValue(child(path, "preserveUnknownFields"), true, detail)];
}

async function versionListErrors(
  spec: StoredSpec,
  path: string,
  options: SpecOptions,
): Promise<FieldError[]> {
  const errors: FieldError[] = [];
  for (const [i, version] of (spec.versions ?? []).entries()) {
    const where = at(child(path, "versions"), i);
    const texts = isDns1035Label(version.name);
    if (texts.length > 0)
      errors.push(invalidValue(child(where, "name"), version.name, texts.join(",")));
    errors.push(...(await versionErrors(version, where, subresourcesOf(spec, version), options)));
  }
  return errors;
}

function subresourcesOf(spec: StoredSpec, version: StoredVersion): Subresources | undefined {
  const own = (spec.versions ?? []).some((one) => one.subresources !== undefined);
  return own ? version.subresources : spec.subresources;
}

async function versionErrors(
  version: StoredVersion,
  path: string,
  subresources: Subresources | undefined,
  options: SpecOptions,
): Promise<FieldError[]> {
  const { deprecated = false, deprecationWarning, schema } = version;
  const errors = deprecationErrors(deprecated, deprecationWarning, path);
  const raw = schema?.openAPIV3Schema;
  const status = hasStatus(subresources);
  errors.push(...(await validationErrors(raw, child(path, "schema"), status, options)));
  errors.push(...subresourceErrors(version.subresources, child(path, "subresources")));
  errors.push(...columnListErrors(version, path));
  if ((version.selectableFields?.length ?? 0) === 0) return errors;
  const where = child(path, "selectableFields");
  if (raw === undefined) {
    const detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
    return [...errors, invalidValue(where, "", detail)];
  }
  return [...errors, ...selectable(version, raw, where, version.name, options)];
}

function selectable(
  common: StoredCommon,
  schema: RawSchema,
  path: string,
  name: string,
  options: SpecOptions,
): FieldError[] {
  const allowMany = options.manySelectable.has(name);
  return selectableFieldErrors(common.selectableFields ?? [], schema, path, allowMany);
}

function columnListErrors(common: StoredCommon, path: string): FieldError[] {
  const where = child(path, "additionalPrinterColumns");
  return (common.additionalPrinterColumns ?? []).flatMap((column, i) =>
    columnErrors(column, at(where, i)),
  );
}

function hasStatus(subresources: Subresources | undefined): boolean {
  return subresources?.status !== undefined && subresources.status !== null;
}

/** What all versions have in common, at the top. */
async function topErrors(
  spec: StoredSpec,
  path: string,
  options: SpecOptions,
): Promise<FieldError[]> {
  const anyStatus =
    hasStatus(spec.subresources) ||
    (spec.versions ?? []).some((version) => hasStatus(version.subresources));
  const raw = spec.validation?.openAPIV3Schema;
  const errors = [
    ...(await validationErrors(raw, child(path, "validation"), anyStatus, options)),
    ...subresourceErrors(spec.subresources, child(path, "subresources")),
    ...columnListErrors(spec, path),
  ];
  if ((spec.selectableFields?.length ?? 0) === 0) return errors;
  const where = child(path, "selectableFields");
  if (raw === undefined) {
    return [
      ...errors,
      invalidValue(where, "", "may only be set when validations.schema is included"),
    ];
  }
  return [...errors, ...selectable(spec, raw, where, "", options)];
}

/** One schema: its root, its structure, its defaults, its rules. */
async function validationErrors(
  schema: RawSchema | undefined,
  path: string,
  status: boolean,
  options: SpecOptions,
): Promise<FieldError[]> {
  if (schema === undefined) return [];
  const where = child(path, "openAPIV3Schema");
  if (isTooDeep(schema)) {
    return [fieldForbidden(where, `must not be nested deeper than ${MAX_SCHEMA_DEPTH} levels`)];
  }
  const errors = rootErrors(schema, where, status);
  const unsupported = options.structural ? unsupportedPart(schema) : undefined;
  const structure = options.structural && unsupported === undefined;
  const broken = structure ? await structureErrors(schema, where, options) : [];
  errors.push(...broken);
  const schemaOptions = {
    requireValidTypes: options.validTypes,
    requireAtomicSets: options.atomicSets,
    requireMapKeys: options.mapKeys,
  };
  const rules = structure && broken.length === 0 ? options.rules : undefined;
  await options.pause();
  errors.push(...schemaErrors(schema, where, schemaOptions, rules));
  if (errors.length === 0 && unsupported !== undefined) {
    errors.push(invalidValue(where, "", unsupported));
  }
  return errors;
}

async function structureErrors(
  schema: RawSchema,
  path: string,
  options: SpecOptions,
): Promise<FieldError[]> {
  await options.pause();
  const errors = structuralErrors(schema, path, options.patterns);
  if (errors.length > 0) return errors;
  await options.pause();
  return defaultErrors(schema as Schema, path, {
    pruned: options.prunedDefaults,
    patterns: options.patterns,
    rules: options.defaultRules,
  });
}

/** What is at the top is not in a version, and what all versions share is at the top. */
function commonErrors(spec: StoredSpec, path: string): FieldError[] {
  const versions = spec.versions ?? [];
  const errors: FieldError[] = [];
  for (const [name, top, what] of COMMON) {
    const some = versions.some((version) => isPresent(version[name]));
    if (isPresent(spec[top]) && some) {
      const detail = `top-level and per-version ${what} are mutually exclusive`;
      errors.push(fieldForbidden(child(path, top), detail));
    }
  }
  for (const [name, top, what] of COMMON) {
    const first = versions[0]?.[name];
    if (!isPresent(first) || !versions.every((version) => sameJson(version[name], first))) continue;
    const detail =
      `per-version ${what} may not all be set to identical values (top-level ${top} should be ` +
      "used instead)";
    errors.push(invalidValue(child(path, "versions"), versions, detail));
  }
  return errors;
}

const COMMON = [
  ["schema", "validation", "schemas"],
  ["subresources", "subresources", "subresources"],
  ["additionalPrinterColumns", "additionalPrinterColumns", "additionalPrinterColumns"],
] as const;

function isPresent(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined;
}

function storageErrors(spec: StoredSpec, path: string): FieldError[] {
  const versions = spec.versions ?? [];
  const where = child(path, "versions");
  // No list at all is shown as Go shows one.
  const shown = spec.versions?.map(internalVersion) ?? null;
  const errors: FieldError[] = [];
  if (new Set(versions.map((version) => version.name)).size < versions.length) {
    errors.push(invalidValue(where, shown, "must contain unique version names"));
  }
  if (versions.filter((version) => version.storage === true).length !== 1) {
    const detail = "must have exactly one version marked as storage version";
    errors.push(invalidValue(where, shown, detail));
  }
  const texts = isDns1035Label(spec.version ?? "");
  if (spec.version !== undefined && spec.version !== "" && texts.length > 0) {
    errors.push(invalidValue(child(path, "version"), spec.version, texts.join(",")));
  }
  return errors;
}

/** A version as Kubernetes' texts show it: by the names of Go's fields. */
function internalVersion(version: StoredVersion): object {
  return {
    Name: version.name,
    Served: version.served ?? false,
    Storage: version.storage ?? false,
    Deprecated: version.deprecated ?? false,
    DeprecationWarning: version.deprecationWarning ?? null,
    Schema: version.schema ?? null,
    Subresources: version.subresources ?? null,
    AdditionalPrinterColumns: version.additionalPrinterColumns ?? null,
    SelectableFields: version.selectableFields ?? null,
  };
}

function preservedConversion(spec: StoredSpec, path: string): FieldError[] {
  const strategy = spec.conversion?.strategy;
  if (strategy === undefined || strategy === "None" || spec.preserveUnknownFields !== true)
    return [];
  const detail = "must be None if spec.preserveUnknownFields is true";
  return [invalidValue(child(path, "conversion.strategy"), strategy, detail)];
}

/** What a root may have beside a status subresource, by the names of Go's fields. */
const ALLOWED: readonly [goName: string, name: keyof RawSchema][] = [
  ["Description", "description"],
  ["Type", "type"],
  ["Format", "format"],
  ["Title", "title"],
  ["Maximum", "maximum"],
  ["ExclusiveMaximum", "exclusiveMaximum"],
  ["Minimum", "minimum"],
  ["ExclusiveMinimum", "exclusiveMinimum"],
  ["MaxLength", "maxLength"],
  ["MinLength", "minLength"],
  ["Pattern", "pattern"],
  ["MaxItems", "maxItems"],
  ["MinItems", "minItems"],
  ["UniqueItems", "uniqueItems"],
  ["MultipleOf", "multipleOf"],
  ["Required", "required"],
  ["Items", "items"],
  ["Properties", "properties"],
  ["ExternalDocs", "externalDocs"],
  ["Example", "example"],
  ["XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"],
  ["XValidations", "x-kubernetes-validations"],
];

const ALLOWED_NAMES: ReadonlySet<string> = new Set(ALLOWED.map(([, name]) => name));

/** @param status whether the status subresource is enabled, whose schema is cut out */
export function rootErrors(schema: RawSchema, path: string, status: boolean): FieldError[] {
  const errors: FieldError[] = [];
  if (status) errors.push(...statusRootErrors(schema, path));
  if (schema.nullable === true) {
    errors.push(fieldForbidden(`${path}.nullable`, "nullable cannot be true at the root"));
  }
  return errors;
}

function statusRootErrors(schema: RawSchema, path: string): FieldError[] {
  if (schema.type !== undefined && schema.type !== "object") {
    const detail =
      'only "object" is allowed as the type at the root of the schema if the status subresource ' +
      "is enabled";
    return [invalidValue(`${path}.type`, schema.type, detail)];
  }
  const other = Object.entries(schema).find(
    ([name, value]) => !ALLOWED_NAMES.has(name) && isSet(value),
  );
  if (other === undefined) return [];
  const names = ALLOWED.map(([goName]) => goName).join(" ");
  const detail =
    `only [${names}] fields are allowed at the root of the schema if the status subresource is ` +
    "enabled";
  return [invalidValue(path, schema, detail)];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== "";
}
