/**
 * The rules for the schemas of definitions besides structure (apiextensions-apiserver:
 * pkg/apis/apiextensions/validation: ValidateCustomResourceDefinitionOpenAPISchema).
 */
import {
  type FieldError,
  fieldForbidden,
  invalidValue,
  notSupported,
  required,
  type ValidationRule,
} from "@quorate/kube-storage";
import { at, child, keyed } from "../schema/paths.ts";
import { META_FIELDS } from "../schema/prune.ts";
import { fieldPathError } from "./field-path.ts";
import { listErrors, mapKeyErrors } from "./list-rules.ts";
import { itemsOf, type RawSchema, valuesOf } from "./raw-schema.ts";

/** What is stricter for a new definition than for one that is already stored. */
export interface SchemaOptions {
  readonly requireValidTypes: boolean;
  readonly requireAtomicSets: boolean;
  readonly requireMapKeys: boolean;
}

/** Where a schema's rules (x-kubernetes-validations) stand. */
export interface RuleScope {
  /** How often the schema's value can occur in one object; undefined: without bound. */
  readonly cardinality: number | undefined;
  /** Whether the schema is that of a whole resource. */
  readonly isResource: boolean;
  /** The first schema on the way here whose values have no counterpart in the old object. */
  readonly uncorrelated: string | undefined;
}

/** Compiles rules and estimates what they cost. */
export interface RuleChecker {
  /** Errors of the rules of one schema. */
  check(schema: RawSchema, path: string, scope: RuleScope): FieldError[];
  /** Errors of all rules of a whole schema together, which has been checked. */
  finish(path: string): FieldError[];
}

/** How a schema is reached. */
interface Place extends RuleScope {
  /** Why no default is allowed here; "" where one is. */
  readonly noDefaults: string;
  /** Inside of apiVersion, kind or metadata of a resource. */
  readonly insideMeta: boolean;
  /** Below allOf, anyOf, oneOf or not, where rules are not compiled. */
  readonly nested: boolean;
}

const ROOT: Place = {
  cardinality: 1,
  isResource: true,
  uncorrelated: undefined,
  noDefaults: "",
  insideMeta: false,
  nested: false,
};

export const SCHEMA_TYPES: readonly string[] = [
  "array",
  "boolean",
  "integer",
  "number",
  "object",
  "string",
];

/**
 * All errors: those of schemas, then those of rules.
 * @param rules undefined where rules are not to be compiled
 */
export function schemaErrors(
  schema: RawSchema,
  path: string,
  options: SchemaOptions,
  rules: RuleChecker | undefined,
): FieldError[] {
  const check = new SchemaCheck(options, rules);
  check.node(schema, path, ROOT, true);
  return [...check.errors, ...check.ruleErrors, ...(rules?.finish(path) ?? [])];
}

class SchemaCheck {
  readonly errors: FieldError[] = [];
  readonly ruleErrors: FieldError[] = [];
  readonly #options: SchemaOptions;
  readonly #rules: RuleChecker | undefined;

  constructor(options: SchemaOptions, rules: RuleChecker | undefined) {
    this.#options = options;
    this.#rules = rules;
  }

  node(schema: RawSchema, path: string, place: Place, isRoot = false): void {
    const before = this.errors.length;
    this.#own(schema, path, place);
    this.#values(schema, path, place);
    this.#properties(schema, path, place, isRoot);
    this.#alternatives(schema, path, place);
    this.#items(schema, path, place);
    this.#mapType(schema, path);
    this.errors.push(...listErrors(schema, path, this.#options.requireAtomicSets));
    if (this.#options.requireMapKeys) this.errors.push(...mapKeyErrors(schema, path));
    if ((schema["x-kubernetes-validations"]?.length ?? 0) === 0) return;
    this.errors.push(...ruleTextErrors(schema, path));
    if (this.errors.length > before || place.nested || this.#rules === undefined) return;
    this.ruleErrors.push(...this.#rules.check(schema, path, place));
  }

  #forbid(path: string, name: string, detail: string): void {
    this.errors.push(fieldForbidden(child(path, name), detail));
  }

  #own(schema: RawSchema, path: string, place: Place): void {
    const type: string = schema.type ?? "";
    if (this.#options.requireValidTypes && type !== "" && !SCHEMA_TYPES.includes(type)) {
      this.errors.push(notSupported(child(path, "type"), type, SCHEMA_TYPES));
    }
    if ((schema.default ?? null) !== null && place.noDefaults !== "") {
      this.#forbid(path, "default", `must not be set ${place.noDefaults}`);
    }
    for (const [name, isSet] of UNSUPPORTED) {
      if (isSet(schema)) this.#forbid(path, name, `${name} is not supported`);
    }
    if (type === "null") {
      this.#forbid(path, "type", "type cannot be set to null, use nullable as an alternative");
    }
    if (Array.isArray(schema.items) && schema.items.length > 0) {
      this.#forbid(path, "items", "items must be a schema object and not an array");
    }
    if (place.insideMeta && schema["x-kubernetes-embedded-resource"] === true) {
      this.#forbid(
        path,
        "x-kubernetes-embedded-resource",
        "must not be used inside of resource meta",
      );
    }
    if (schema.uniqueItems === true) {
      const detail =
        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
      this.#forbid(path, "uniqueItems", detail);
    }
    if (schema["x-kubernetes-preserve-unknown-fields"] === false) {
      const where = child(path, "x-kubernetes-preserve-unknown-fields");
      this.errors.push(invalidValue(where, false, "must be true or undefined"));
    }
  }

  #values(schema: RawSchema, path: string, place: Place): void {
    const { additionalProperties } = schema;
    if (additionalProperties === undefined) return;
    if (Object.keys(schema.properties ?? {}).length > 0 && additionalProperties !== true) {
      const detail = "additionalProperties and properties are mutual exclusive";
      this.#forbid(path, "additionalProperties", detail);
    }
    const values = valuesOf(schema);
    if (values === undefined) return;
    const noDefaults = place.insideMeta
      ? "inside additionalProperties applying to object metadata"
      : place.noDefaults;
    this.node(values, child(path, "additionalProperties"), {
      ...this.#below(schema, place),
      noDefaults,
    });
  }

  #properties(schema: RawSchema, path: string, place: Place, isRoot: boolean): void {
    const isResource = isRoot || schema["x-kubernetes-embedded-resource"] === true;
    const below = this.#below(schema, place);
    const uncorrelated =
      schema["x-kubernetes-map-type"] === "atomic"
        ? (place.uncorrelated ?? path)
        : place.uncorrelated;
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      const isMeta = isResource && META_FIELDS.has(key);
      this.node(property, keyed(child(path, "properties"), key), {
        ...below,
        uncorrelated,
        insideMeta: place.insideMeta || isMeta,
        noDefaults: isMeta && isRoot ? `in top-level ${key}` : place.noDefaults,
      });
    }
  }

  #alternatives(schema: RawSchema, path: string, place: Place): void {
    const nested = { ...place, nested: true };
    if (schema.not !== undefined) this.node(schema.not, child(path, "not"), nested);
    for (const name of ["allOf", "oneOf", "anyOf"] as const) {
      for (const [i, one] of (schema[name] ?? []).entries()) {
        this.node(one, at(child(path, name), i), nested);
      }
    }
    for (const [key, one] of Object.entries(schema.definitions ?? {})) {
      this.node(one, keyed(child(path, "definitions"), key), nested);
    }
  }

  #items(schema: RawSchema, path: string, place: Place): void {
    const isMap = schema["x-kubernetes-list-type"] === "map";
    const below = {
      ...this.#below(schema, place),
      uncorrelated: isMap ? place.uncorrelated : (place.uncorrelated ?? path),
    };
    const items = itemsOf(schema);
    if (items !== undefined) this.node(items, child(path, "items"), below);
    else if (Array.isArray(schema.items)) {
      for (const [i, one] of (schema.items as readonly RawSchema[]).entries()) {
        this.node(one, at(child(path, "items"), i), below);
      }
    }
  }

  #mapType(schema: RawSchema, path: string): void {
    const mapType: string | undefined = schema["x-kubernetes-map-type"];
    if (mapType === undefined) return;
    if (schema.type !== "object") {
      this.errors.push(
        wrongType(schema, path, "must be object if x-kubernetes-map-type is specified"),
      );
    }
    if (mapType === "atomic" || mapType === "granular") return;
    const where = child(path, "x-kubernetes-map-type");
    this.errors.push(notSupported(where, mapType, ["atomic", "granular"]));
  }

  /** The place of a schema directly below. */
  #below(schema: RawSchema, place: Place): Place {
    const factor = maxElements(schema);
    const { cardinality } = place;
    return {
      ...place,
      isResource: false,
      cardinality:
        cardinality === undefined || factor === undefined ? undefined : cardinality * factor,
    };
  }
}

/** How many values of the schemas below one value has at most; undefined: without bound. */
function maxElements(schema: RawSchema): number | undefined {
  if (schema.type === "array") return positive(schema.maxItems);
  if (schema.type !== "object" || schema.additionalProperties === undefined) return 1;
  return positive(schema.maxProperties);
}

function positive(bound: number | undefined): number | undefined {
  return bound === undefined ? undefined : Math.max(bound, 0);
}

/** The type that an extension demands is missing or another one. */
export function wrongType(schema: RawSchema, path: string, detail: string): FieldError {
  const where = child(path, "type");
  const type = schema.type ?? "";
  return type === "" ? required(where, detail) : invalidValue(where, type, detail);
}

type Unsupported = readonly [name: string, isSet: (schema: RawSchema) => boolean];

const UNSUPPORTED: readonly Unsupported[] = [
  ["id", (s) => (s.id ?? "") !== ""],
  ["additionalItems", (s) => s.additionalItems !== undefined],
  ["patternProperties", (s) => Object.keys(s.patternProperties ?? {}).length > 0],
  ["definitions", (s) => Object.keys(s.definitions ?? {}).length > 0],
  ["dependencies", (s) => s.dependencies !== undefined],
  ["$ref", (s) => s.$ref !== undefined],
];

/** The reasons that a rule may have for refusing a value. */
const RULE_REASONS: readonly string[] = [
  "FieldValueDuplicate",
  "FieldValueForbidden",
  "FieldValueInvalid",
  "FieldValueRequired",
];

const LINE_BREAK = /[\n\r]/;

/** The texts of x-kubernetes-validations; their expressions are compiled in ../cel. */
function ruleTextErrors(schema: RawSchema, path: string): FieldError[] {
  const rules = schema["x-kubernetes-validations"] ?? [];
  const base = child(path, "x-kubernetes-validations");
  return rules.flatMap((rule, i) => textErrors(rule, schema, at(base, i)));
}

function textErrors(rule: ValidationRule, schema: RawSchema, path: string): FieldError[] {
  const errors: FieldError[] = [...messageErrors(rule, path)];
  const { messageExpression = "", reason, fieldPath = "" } = rule;
  if (messageExpression !== "" && messageExpression.trim() === "") {
    const detail = "messageExpression must be non-empty if specified";
    errors.push(required(child(path, "messageExpression"), detail));
  }
  if (reason !== undefined && reason !== null && !RULE_REASONS.includes(reason)) {
    errors.push(notSupported(child(path, "reason"), reason, RULE_REASONS));
  }
  if (fieldPath === "") return errors;
  const where = child(path, "fieldPath");
  if (fieldPath.trim() === "") {
    errors.push(invalidValue(where, fieldPath, "must be non-empty if specified"));
  }
  if (LINE_BREAK.test(fieldPath)) {
    errors.push(invalidValue(where, fieldPath, "must not contain line breaks"));
  }
  if (fieldPathError(fieldPath, schema, true) !== undefined) {
    errors.push(invalidValue(where, fieldPath, "must be a valid path"));
  }
  return errors;
}

function messageErrors(rule: ValidationRule, path: string): FieldError[] {
  const { rule: text = "", message = "" } = rule;
  const where = child(path, "message");
  if (text.trim() === "") return [required(child(path, "rule"), "rule is not specified")];
  if (message !== "" && message.trim() === "") {
    return [invalidValue(where, message, "must be non-empty if specified")];
  }
  if (LINE_BREAK.test(message.trim())) {
    return [invalidValue(where, message, "must not contain line breaks")];
  }
  if (LINE_BREAK.test(text.trim()) && message.trim() === "") {
    return [required(where, "message must be specified if rule contains line breaks")];
  }
  return [];
}
