/**
 * Validation of values against a schema, with the texts of Kubernetes' own validator (kube-openapi:
 * pkg/validation/validate; apiextensions-apiserver: pkg/apiserver/validation). People read these
 * texts from kubectl, and no general JSON Schema library produces them: which errors of an anyOf
 * are shown depends on how many checks passed, and an unchanged value is excused in an update.
 */

import type { FieldError, Schema } from "@quorate/kube-storage";
import {
  goJson,
  invalidValue,
  isObject,
  type Json,
  notSupported,
  required,
  sameJson,
  tooLong,
  tooMany,
  typeInvalid,
} from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import { fieldOf } from "../schema/edit.ts";
import { shownPath } from "../schema/paths.ts";
import { valueSchema } from "../schema/traits.ts";
import { Correlated } from "./correlated.ts";
import { effectiveFormat, formatCheck } from "./formats.ts";
import { validateNumber } from "./number-rules.ts";
import { isInt64 } from "./numbers.ts";
import { type Pattern, PatternError, type Patterns } from "./patterns.ts";
import { MAX_PROBLEMS, type Problem, type Reporter } from "./problem.ts";

/** One validation of one value. */
export class Validation implements Reporter {
  readonly #patterns: Patterns | undefined;
  /** Of the value in its object: "" or "status". */
  readonly #prefix: string;
  readonly #path: string[] = [];

  /** @param patterns needed where the schema has patterns */
  constructor(patterns: Patterns | undefined, prefix: string) {
    this.#patterns = patterns;
    this.#prefix = prefix;
  }

  /** @param old the value that this one replaces; unchanged parts of it are excused */
  run(value: Json, schema: Schema, old: Json | undefined): FieldError[] {
    const problems: Problem[] = [];
    const ratchet = old === undefined ? undefined : new Correlated(value, old, schema);
    this.#ratcheted(value, schema, ratchet, problems);
    const byText = new Map(problems.map((problem) => [problem.text, problem.error]));
    return [...byText.values()].slice(0, MAX_PROBLEMS);
  }

  /** Where the value is, as the texts name it. */
  get where(): string {
    const path = this.#path.join("");
    return path.startsWith(".") ? path.slice(1) : path;
  }

  /** Adds an error whose text names the value's path. */
  report(to: Problem[], text: string, make: (field: string, text: string) => FieldError): void {
    const { where } = this;
    const field = this.#prefix === "" ? where : this.#prefix + (where === "" ? "" : `.${where}`);
    if (to.length <= MAX_PROBLEMS) to.push({ text, error: make(shownPath(field), text) });
  }

  /** Adds an error that Kubernetes reports without a field. */
  reportPlain(to: Problem[], text: string): void {
    if (to.length > MAX_PROBLEMS) return;
    to.push({ text, error: invalidValue(shownPath(this.#prefix), "", text) });
  }

  #below(part: string, visit: () => number): number {
    this.#path.push(part);
    const count = visit();
    this.#path.pop();
    return count;
  }

  /** The number of checks that passed; errors are dropped where the value is the old one. */
  #ratcheted(value: Json, schema: Schema, ratchet: Correlated | undefined, to: Problem[]): number {
    if (ratchet === undefined) return this.#value(value, schema, undefined, to);
    const problems: Problem[] = [];
    const count = this.#value(value, schema, ratchet, problems);
    if (problems.length > 0 && !ratchet.equal) to.push(...problems);
    return count;
  }

  #value(value: Json, schema: Schema, ratchet: Correlated | undefined, to: Problem[]): number {
    if (value === null) return this.#null(schema, to);
    let count = 1;
    const format = effectiveFormat(schema);
    if (schema.type !== undefined || isIntOrString(schema) || format !== "") {
      count += this.#type(value, schema, format, to) + 1;
    }
    count += this.#combined(value, schema, ratchet, to) + 1;
    if (typeof value === "string") count += this.#string(value, schema, format, to);
    else if (typeof value === "number")
      count += validateNumber(this, value, schema, format, to) + 1;
    else if (Array.isArray(value)) count += this.#list(value, schema, ratchet, to) + 1;
    this.#enum(value, schema, to);
    count++;
    if (isObject(value)) count += this.#object(value, schema, ratchet, to) + 1;
    return count;
  }

  #null(schema: Schema, to: Problem[]): number {
    const types = typesOf(schema);
    let count = 1;
    if (types.length > 0 && schema.nullable !== true) {
      count = 0;
      this.#misfit(to, types.join(","), "null");
    }
    this.#enum(null, schema, to);
    return count;
  }

  #misfit(to: Problem[], wanted: string, found: string): void {
    const text = `${this.where} in body must be of type ${wanted}: ${goQuote(found)}`;
    this.report(to, text, (field) => typeInvalid(field, found, text));
  }

  #type(value: Json, schema: Schema, format: string, to: Problem[]): number {
    const types = typesOf(schema);
    const [found, foundFormat] = typeOf(value);
    const fits =
      types.includes(found) ||
      (found === "number" && types.includes("integer") && Number.isInteger(value)) ||
      (found === "integer" && types.includes("number"));
    const isText = typeof value === "string" || Array.isArray(value);
    if (!isText && format !== "" && !fits && foundFormat !== format) {
      this.#misfit(to, format, foundFormat);
      return 0;
    }
    const numeric = types.includes("number") || types.includes("integer");
    if (!numeric && format !== "" && isText) return 1;
    if (fits) return 1;
    this.#misfit(to, types.join(","), found);
    return 0;
  }

  #string(value: string, schema: Schema, format: string, to: Problem[]): number {
    this.#stringRules(value, schema, to);
    if (format === "") return 1;
    const check = formatCheck(format);
    if (check === undefined) return 1;
    if (!check(value)) this.#misfit(to, format, value);
    return 2;
  }

  /** Only the first rule that fails is reported. */
  #stringRules(value: string, schema: Schema, to: Problem[]): void {
    const { maxLength, minLength, pattern } = schema;
    if (maxLength !== undefined && isLonger(value, maxLength)) {
      const text = `${this.where} in body should be at most ${maxLength} chars long`;
      this.report(to, text, (field) => tooLong(field, maxLength));
    } else if (minLength !== undefined && minLength > 0 && !isLonger(value, minLength - 1)) {
      const text = `${this.where} in body should be at least ${minLength} chars long`;
      this.report(to, text, (field) => invalidValue(field, value, text));
    } else if (pattern !== undefined && pattern !== "") {
      this.#pattern(value, pattern, to);
    }
  }

  #pattern(value: string, source: string, to: Problem[]): void {
    let shown = source;
    try {
      if (this.#compile(source).test(value)) return;
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      shown = `${source}, but pattern is invalid: ${error.message}`;
    }
    const text = `${this.where} in body should match '${shown}'`;
    this.report(to, text, (field) => invalidValue(field, value, text));
  }

  #compile(source: string): Pattern {
    if (this.#patterns === undefined) throw new PatternError("patterns are not loaded");
    return this.#patterns.compile(source);
  }

  #enum(value: Json, schema: Schema, to: Problem[]): void {
    const { enum: allowed } = schema;
    if (allowed === undefined || allowed.length === 0) return;
    if (value !== null && allowed.some((one) => sameJson(value, one))) return;
    const shown = allowed.map((one) => (typeof one === "string" ? one : goJson(one)));
    const text = `${this.where} in body should be one of [${shown.join(" ")}]`;
    this.report(to, text, (field) => notSupported(field, value, shown));
  }

  #list(
    list: readonly Json[],
    schema: Schema,
    ratchet: Correlated | undefined,
    to: Problem[],
  ): number {
    const { items, minItems, maxItems } = schema;
    let count = 1;
    if (items !== undefined) {
      for (const [i, item] of list.entries()) {
        count += this.#below(`[${i}]`, () => this.#ratcheted(item, items, ratchet?.index(i), to));
      }
    }
    if (minItems !== undefined && list.length < minItems) {
      const text = `${this.where} in body should have at least ${minItems} items`;
      this.report(to, text, (field) => invalidValue(field, list.length, text));
    }
    if (maxItems !== undefined && list.length > maxItems) {
      const text = `${this.where} in body should have at most ${maxItems} items`;
      this.report(to, text, (field) => tooMany(field, list.length, maxItems));
    }
    return count;
  }

  #object(
    object: Readonly<Record<string, Json | undefined>>,
    schema: Schema,
    ratchet: Correlated | undefined,
    to: Problem[],
  ): number {
    this.#objectSize(Object.keys(object).length, schema, to);
    const values = valueSchema(schema);
    const atRoot = this.#path.length === 0;
    let count = 0;
    for (const [key, value] of Object.entries(object)) {
      const below = fieldOf(schema.properties, key) ?? values;
      if (below !== undefined && value !== undefined) {
        const old =
          atRoot && (key === "kind" || key === "apiVersion") ? undefined : ratchet?.key(key);
        count += this.#below(`.${key}`, () => this.#ratcheted(value, below, old, to));
      } else if (schema.additionalProperties === false && below === undefined) {
        const text = `${this.where}.${key} in body is a forbidden property`;
        this.report(to, text, (field) => invalidValue(field, key, text));
      }
    }
    for (const name of schema.required ?? []) {
      if (fieldOf(object, name) !== undefined) continue;
      const { where } = this;
      this.#path.push(`.${name}`);
      this.report(to, `${where}.${name} in body is required`, (field) => required(field));
      this.#path.pop();
    }
    return count;
  }

  #objectSize(size: number, schema: Schema, to: Problem[]): void {
    const { minProperties, maxProperties } = schema;
    if (minProperties !== undefined && size < minProperties) {
      const text = `${this.where} in body should have at least ${minProperties} properties`;
      this.report(to, text, (field) => invalidValue(field, size, text));
    }
    if (maxProperties !== undefined && size > maxProperties) {
      const text = `${this.where} in body should have at most ${maxProperties} properties`;
      this.report(to, text, (field) => tooMany(field, size, maxProperties));
    }
  }

  /** anyOf, oneOf, allOf and not. Of failed alternatives the best one's errors are shown. */
  #combined(value: Json, schema: Schema, ratchet: Correlated | undefined, to: Problem[]): number {
    let count = 1;
    if (schema.anyOf !== undefined && schema.anyOf.length > 0) {
      const tried = this.#alternatives(value, schema.anyOf, ratchet, true);
      count += tried.shown.count;
      if (tried.valid === 0)
        this.reportPlain(to, `${goQuote(this.where)} must validate at least one schema (anyOf)`);
      to.push(...tried.shown.problems);
    }
    if (schema.oneOf !== undefined && schema.oneOf.length > 0) {
      const tried = this.#alternatives(value, schema.oneOf, ratchet, false);
      if (tried.valid !== 1) {
        const found =
          tried.valid === 0 ? "Found none valid" : `Found ${tried.valid} valid alternatives`;
        const path = goQuote(this.where);
        this.reportPlain(to, `${path} must validate one and only one schema (oneOf). ${found}`);
      }
      if (tried.valid <= 1) {
        count += tried.shown.count;
        to.push(...tried.shown.problems);
      }
    }
    if (schema.allOf !== undefined && schema.allOf.length > 0) {
      count += this.#all(value, schema.allOf, ratchet, to);
    }
    if (schema.not !== undefined) {
      const problems: Problem[] = [];
      this.#value(value, schema.not, ratchet, problems);
      if (problems.length === 0)
        this.reportPlain(to, `${goQuote(this.where)} must not validate the schema (not)`);
    }
    return count;
  }

  #alternatives(
    value: Json,
    schemas: readonly Schema[],
    ratchet: Correlated | undefined,
    stopAtFirst: boolean,
  ): { valid: number; shown: { count: number; problems: readonly Problem[] } } {
    let valid = 0;
    let shown: { count: number; problems: readonly Problem[] } | undefined;
    for (const schema of schemas) {
      const problems: Problem[] = [];
      const count = this.#value(value, schema, ratchet, problems);
      if (problems.length === 0) {
        if (valid === 0) shown = { count, problems };
        valid++;
        if (stopAtFirst) break;
      } else if (valid === 0 && (shown === undefined || count > shown.count)) {
        shown = { count, problems };
      }
    }
    return { valid, shown: shown ?? { count: 0, problems: [] } };
  }

  #all(
    value: Json,
    schemas: readonly Schema[],
    ratchet: Correlated | undefined,
    to: Problem[],
  ): number {
    let valid = 0;
    let count = 0;
    for (const schema of schemas) {
      const problems: Problem[] = [];
      count += this.#value(value, schema, ratchet, problems);
      if (problems.length === 0) valid++;
      to.push(...problems);
    }
    if (valid !== schemas.length) {
      const none = valid === 0 ? ". None validated" : "";
      const text = `${goQuote(this.where)} must validate all the schemas (allOf)${none}`;
      this.reportPlain(to, text);
    }
    return count;
  }
}

function isIntOrString(schema: Schema): boolean {
  return schema["x-kubernetes-int-or-string"] === true;
}

function typesOf(schema: Schema): readonly string[] {
  if (isIntOrString(schema)) return ["integer", "string"];
  return schema.type === undefined ? [] : [schema.type];
}

/** The JSON type of a value, and Go's format of its type. */
function typeOf(value: Json): readonly [type: string, format: string] {
  if (typeof value === "number")
    return isInt64(value) ? ["integer", "int64"] : ["number", "float64"];
  if (typeof value === "object") return Array.isArray(value) ? ["array", ""] : ["object", ""];
  return [typeof value, ""];
}

/** Whether a text has more than `max` characters (not UTF-16 units). */
function isLonger(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let count = 0;
  for (const _ of text) if (++count > max) return true;
  return false;
}
