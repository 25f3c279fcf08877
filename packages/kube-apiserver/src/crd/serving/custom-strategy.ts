/** The strategies of custom resources (apiextensions-apiserver: registry/customresource). */
import {
  apiVersionOf,
  type FieldError,
  invalidValue,
  isObject,
  isQualifiedName,
  type Json,
  jsonOf,
  type KubeObject,
  type Strategy,
  sameJson,
  withField,
  withMetadata,
} from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import { goNumber } from "../../apply/go-text.ts";
import type { ScaleSubresource, Subresources } from "../definition/types.ts";
import { fieldOf } from "../schema/edit.ts";
import { validateEmbedded } from "../schema/embedded.ts";
import { validateListTypes } from "../schema/list-types.ts";
import { isInt64 } from "../validation/numbers.ts";
import type { Patterns } from "../validation/patterns.ts";
import { Validation } from "../validation/validate-value.ts";
import type { VersionSchema } from "./version-schema.ts";

/** Checks an object against the rules of its schema (x-kubernetes-validations). */
export type RuleEvaluation = (
  object: Json,
  old: Json | undefined,
) => readonly FieldError[] | Promise<readonly FieldError[]>;

/** What the rules of a version are made of. */
export interface CustomRules {
  readonly version: VersionSchema;
  readonly namespaced: boolean;
  readonly subresources: Subresources | undefined;
  readonly patterns: Patterns | undefined;
  /** Undefined where the schema has no rules. */
  readonly rules: RuleEvaluation | undefined;
}

export function customStrategy(custom: CustomRules): Strategy {
  const { version, namespaced, subresources } = custom;
  const hasStatus = (subresources?.status ?? undefined) !== undefined;
  return {
    kind: version.kind,
    namespaced,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: false,
    prepareForCreate: (_ctx, object) =>
      withMetadata(hasStatus ? withField(object, "status", undefined) : object, { generation: 1 }),
    prepareForUpdate(_ctx, object, old) {
      const changed = hasStatus ? withField(object, "status", old["status"]) : object;
      if (sameContent(changed, old)) return changed;
      return withMetadata(changed, { generation: (old.metadata.generation ?? 0) + 1 });
    },
    validate: (_ctx, object) => objectErrors(custom, object),
    validateUpdate: (_ctx, object, old) => objectErrors(custom, object, old),
    warningsOnCreate: (_ctx, object) => finalizerWarnings(object, undefined),
    warningsOnUpdate: (_ctx, object, old) => finalizerWarnings(object, old),
    resetFields: hasStatus ? { "f:status": {} } : {},
  };
}

export function customStatusStrategy(custom: CustomRules): Strategy {
  const strategy = customStrategy(custom);
  return {
    ...strategy,
    prepareForUpdate(_ctx, object, old) {
      const { managedFields } = object.metadata;
      return withField(withMetadata(old, { managedFields }), "status", object["status"]);
    },
    validateUpdate: (_ctx, object, old) => statusErrors(custom, object, old),
    warningsOnUpdate: () => [],
    resetFields: { "f:metadata": {}, "f:spec": {} },
  };
}

/** Whether two objects differ in their metadata at most. */
function sameContent(a: KubeObject, b: KubeObject): boolean {
  return sameJson({ ...a, metadata: {} }, { ...b, metadata: {} });
}

function typeErrors({ version }: CustomRules, object: KubeObject): FieldError[] {
  const errors: FieldError[] = [];
  const apiVersion = apiVersionOf(version.kind);
  if (object.kind !== version.kind.kind) {
    errors.push(invalidValue("kind", object.kind, `must be ${version.kind.kind}`));
  }
  if (object.apiVersion !== apiVersion) {
    errors.push(invalidValue("apiVersion", object.apiVersion, `must be ${apiVersion}`));
  }
  return errors;
}

/** @param old undefined for a new object */
async function objectErrors(
  custom: CustomRules,
  object: KubeObject,
  old?: KubeObject,
): Promise<FieldError[]> {
  const wrongType = typeErrors(custom, object);
  if (wrongType.length > 0) return wrongType;
  const { schema } = custom.version;
  const value = jsonOf(object);
  const before = old === undefined ? undefined : jsonOf(old);
  const errors = [
    ...(schema === undefined ? [] : new Validation(custom.patterns, "").run(value, schema, before)),
    ...scaleErrors(object, custom.subresources?.scale, false),
    ...validateEmbedded(value, schema),
    ...(validateListTypes(before, schema).length > 0 ? [] : validateListTypes(value, schema)),
  ];
  return [...errors, ...(await ruleErrors(custom, errors, value, before))];
}

async function statusErrors(
  custom: CustomRules,
  object: KubeObject,
  old: KubeObject,
): Promise<FieldError[]> {
  const wrongType = typeErrors(custom, object);
  if (wrongType.length > 0) return wrongType;
  const { schema } = custom.version;
  const statusSchema = schema?.properties?.["status"];
  const status = object["status"] as Json | undefined;
  const value = jsonOf(object);
  const lists = validateListTypes(value, schema);
  const errors = [
    ...(statusSchema === undefined || status === undefined
      ? []
      : new Validation(custom.patterns, "status").run(
          status,
          statusSchema,
          old["status"] as Json | undefined,
        )),
    ...scaleErrors(object, custom.subresources?.scale, true),
    ...(lists.length > 0 && validateListTypes(jsonOf(old), schema).length > 0 ? [] : lists),
  ];
  return [...errors, ...(await ruleErrors(custom, errors, value, jsonOf(old)))];
}

/** Errors after which rules are not evaluated: values have not the types that rules rely on. */
const BLOCKING: ReadonlySet<FieldError["type"]> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

const NOT_CHECKED =
  "some validation rules were not checked because the object was invalid; correct the existing " +
  "errors to complete validation";

async function ruleErrors(
  { rules }: CustomRules,
  errors: readonly FieldError[],
  value: Json,
  old: Json | undefined,
): Promise<readonly FieldError[]> {
  if (rules === undefined) return [];
  if (errors.some(({ type }) => BLOCKING.has(type)))
    return [invalidValue("<nil>", null, NOT_CHECKED)];
  return await rules(value, old);
}

const STANDARD: ReadonlySet<string> = new Set(["orphan", "foregroundDeletion", "kubernetes"]);

/**
 * Warnings for finalizers whose names another program may use, too.
 *
 * @param old undefined for a new object; only added finalizers are judged
 */
function finalizerWarnings(object: KubeObject, old: KubeObject | undefined): string[] {
  const present = new Set(old?.metadata.finalizers ?? []);
  const added = (object.metadata.finalizers ?? []).filter((name) => !present.has(name));
  return [...new Set(added)].sort().flatMap(warningsFor);
}

function warningsFor(name: string): string[] {
  const start = `metadata.finalizers: ${goQuote(name)}: `;
  const warnings = isQualifiedName(name).map((text) => start + text);
  if (name.includes("/") || STANDARD.has(name)) return warnings;
  const path = name.includes(".") ? " including a path (/)" : "";
  const reason = "to avoid accidental conflicts with other finalizer writers";
  return [...warnings, `${start}prefer a domain-qualified finalizer name${path} ${reason}`];
}

const MAX_INT32 = 2 ** 31 - 1;

/**
 * The rules for the fields that /scale reads (registry/customresource/validator.go).
 *
 * @param statusOnly for changes of the status
 */
function scaleErrors(
  object: KubeObject,
  scale: ScaleSubresource | undefined,
  statusOnly: boolean,
): FieldError[] {
  if (scale === undefined) return [];
  const { specReplicasPath = "", statusReplicasPath = "", labelSelectorPath } = scale;
  return [
    ...(statusOnly ? [] : replicasErrors(object, specReplicasPath)),
    ...replicasErrors(object, statusReplicasPath),
    ...(labelSelectorPath === undefined ? [] : selectorErrors(object, labelSelectorPath)),
  ];
}

/** The value at a path, and the text for one that is of another type. */
function valueAt(object: KubeObject, path: string): Json | undefined {
  let value: Json | undefined = jsonOf(object);
  for (const name of path.replace(/^\./, "").split(".")) {
    value = isObject(value) ? fieldOf(value, name) : undefined;
  }
  return value;
}

function wrongType(path: string, value: Json, wanted: string): string {
  const shown = typeof value === "object" ? "map[string]interface {}" : goType(value);
  return `${path} accessor error: ${String(value)} is of the type ${shown}, expected ${wanted}`;
}

function goType(value: Json): string {
  if (typeof value === "number") return isInt64(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : typeof value;
}

function replicasErrors(object: KubeObject, path: string): FieldError[] {
  const value = valueAt(object, path);
  if (value === undefined) return [];
  if (typeof value !== "number" || !isInt64(value)) {
    return [invalidValue(path, 0, wrongType(path, value, "int64"))];
  }
  if (value < 0) return [invalidValue(path, value, "should be a non-negative integer")];
  if (value <= MAX_INT32) return [];
  return [invalidValue(path, value, `should be less than or equal to ${goNumber(MAX_INT32)}`)];
}

function selectorErrors(object: KubeObject, path: string): FieldError[] {
  const value = valueAt(object, path);
  if (value === undefined || typeof value === "string") return [];
  return [invalidValue(path, "", wrongType(path, value, "string"))];
}
