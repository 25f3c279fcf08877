/**
 * Evaluates the rules of a schema for an object (apiextensions-apiserver:
 * pkg/apiserver/schema/cel/validation.go). Rules are compiled when they are first needed.
 */

import type { FieldError, Schema, ValidationRule } from "@quorate/kube-storage";
import {
  duplicate,
  fieldForbidden,
  invalidValue,
  isObject,
  type Json,
  required,
} from "@quorate/kube-storage";
import { fieldOf } from "../schema/edit.ts";
import { at, child, keyed, shownPath } from "../schema/paths.ts";
import { traitsOf, valueSchema } from "../schema/traits.ts";
import { Correlated } from "../validation/correlated.ts";
import { OBJECT_BUDGET, PER_CALL_BUDGET } from "./base/budget.ts";
import type { CelEngine } from "./engine.ts";
import { shownFailure } from "./faults.ts";
import type { Variables } from "./lang/evaluate.ts";
import { Optional } from "./lang/values.ts";
import type { Outcome } from "./program.ts";
import { type CompiledRule, compileRules, type RuleSet } from "./rule-set.ts";

const OUT_OF_BUDGET =
  "validation failed due to running out of cost budget, no further validation rules will be run";
const MAX_MESSAGE_BYTES = 5 * 1024;

/** The rules of a schema and of all below it. */
export class RuleEvaluator {
  readonly #schema: Schema;
  readonly #engine: CelEngine;
  readonly #pause: () => Promise<void>;
  readonly #sets = new WeakMap<Schema, RuleSet>();

  /** @param pause lets other work run, after rules that took long */
  constructor(schema: Schema, engine: CelEngine, pause: () => Promise<void>) {
    this.#schema = schema;
    this.#engine = engine;
    this.#pause = pause;
  }

  /** @param old the object before an update; what did not change is excused */
  async evaluate(
    value: Json,
    old: Json | undefined,
    path = "",
    isResource = true,
  ): Promise<FieldError[]> {
    const setOf = (schema: Schema, resource: boolean) => this.#setOf(schema, resource);
    const run = new Run(this.#pause, setOf);
    const correlated = old === undefined ? undefined : new Correlated(value, old, this.#schema);
    const place = { path, correlated, nearest: undefined, isResource };
    await run.visit(this.#schema, value, old, place);
    return run.errors;
  }

  #setOf(schema: Schema, isResource: boolean): RuleSet {
    let set = this.#sets.get(schema);
    if (set === undefined) {
      set = compileRules(schema, isResource, this.#engine);
      this.#sets.set(schema, set);
    }
    return set;
  }
}

/** Where a value is, and what it was. */
interface Place {
  readonly path: string;
  readonly correlated: Correlated | undefined;
  /** The nearest value around this one whose old value is known. */
  readonly nearest: Correlated | undefined;
  readonly isResource: boolean;
}

class Run {
  readonly errors: FieldError[] = [];
  readonly #pause: () => Promise<void>;
  readonly #setOf: (schema: Schema, isResource: boolean) => RuleSet;
  #left = OBJECT_BUDGET;
  #sincePause = 0;
  #isOver = false;

  constructor(pause: () => Promise<void>, setOf: (schema: Schema, isResource: boolean) => RuleSet) {
    this.#pause = pause;
    this.#setOf = setOf;
  }

  async visit(
    schema: Schema,
    value: Json | undefined,
    old: Json | undefined,
    place: Place,
  ): Promise<void> {
    if (this.#isOver || value === null || value === undefined || !traitsOf(schema).rules) return;
    if ((schema["x-kubernetes-validations"]?.length ?? 0) > 0) {
      await this.#rules(schema, value, old ?? undefined, place);
    }
    if (Array.isArray(value)) await this.#items(schema, value, place);
    else if (isObject(value)) await this.#fields(schema, value, old, place);
  }

  async #items(schema: Schema, list: readonly Json[], place: Place): Promise<void> {
    const { items } = schema;
    if (items === undefined || !traitsOf(items).rules) return;
    for (const [i, item] of list.entries()) {
      const correlated = place.correlated?.index(i);
      const path = at(place.path, i);
      await this.visit(items, item, correlated?.old, this.#below(items, place, correlated, path));
    }
  }

  async #fields(
    schema: Schema,
    object: Readonly<Record<string, Json | undefined>>,
    old: Json | undefined,
    place: Place,
  ): Promise<void> {
    const values = valueSchema(schema);
    for (const [key, value] of Object.entries(object)) {
      const property = fieldOf(schema.properties, key);
      const below = property ?? values;
      if (below === undefined || !traitsOf(below).rules) continue;
      const before = isObject(old) ? fieldOf(old, key) : undefined;
      const path = property === undefined ? keyed(place.path, key) : child(place.path, key);
      const correlated = place.correlated?.key(key);
      await this.visit(below, value, before, this.#below(below, place, correlated, path));
    }
  }

  #below(schema: Schema, place: Place, correlated: Correlated | undefined, path: string): Place {
    return {
      path,
      correlated,
      nearest: place.correlated ?? place.nearest,
      isResource: schema["x-kubernetes-embedded-resource"] === true,
    };
  }

  async #rules(schema: Schema, value: Json, old: Json | undefined, place: Place): Promise<void> {
    const { self, rules } = this.#setOf(schema, place.isResource);
    if (self === undefined) return;
    const convert = (one: Json) => self.convert(one);
    const type = schema.type ?? "";
    for (const compiled of rules) {
      if (this.#isOver) return;
      const { rule, program, error, usesOldSelf } = compiled;
      const fail = (detail: string) =>
        this.errors.push(invalidValue(shownPath(place.path), type, detail));
      if (program === undefined) {
        fail(`rule compile error: ${error}`);
        continue;
      }
      const optional = rule.optionalOldSelf === true;
      if (usesOldSelf && old === undefined && !optional) continue;
      const variables = this.#variables(value, old, optional, convert);
      const outcome = await this.#run(program.evaluate(variables, this.#limit()));
      if (outcome.type === "exceeded") {
        fail(this.#left > 0 ? overLimit(rule) : OUT_OF_BUDGET);
        this.#isOver = true;
      } else if (outcome.type === "error") fail(shownFailure(outcome.message, textOf(rule)));
      else if (outcome.value !== true) this.#broken(compiled, schema, value, variables, place);
    }
  }

  #limit(): number {
    return Math.min(PER_CALL_BUDGET, this.#left);
  }

  /** Values are converted when they are read, as they may be large. */
  #variables(
    value: Json,
    old: Json | undefined,
    optional: boolean,
    convert: (value: Json) => unknown,
  ): Variables {
    return (name) => {
      if (name === "self") return convert(value);
      if (name !== "oldSelf") return undefined;
      if (!optional) return old === undefined ? undefined : convert(old);
      return old === undefined ? Optional.none : Optional.of(convert(old));
    };
  }

  async #run(outcome: Outcome): Promise<Outcome> {
    const cost = outcome.type === "exceeded" ? this.#limit() : outcome.cost;
    this.#left -= cost;
    this.#sincePause += cost;
    if (this.#sincePause >= PER_CALL_BUDGET / 2) {
      this.#sincePause = 0;
      await this.#pause();
    }
    return outcome;
  }

  #broken(
    compiled: CompiledRule,
    schema: Schema,
    value: Json,
    variables: Variables,
    { path, correlated, nearest }: Place,
  ): void {
    const unchanged = correlated !== undefined ? correlated.equal : (nearest?.equal ?? false);
    if (!compiled.usesOldSelf && unchanged) return;
    const where = compiled.fieldPath === "" ? path : child(path, compiled.fieldPath);
    const detail = this.#message(compiled, variables) ?? defaultMessage(compiled.rule);
    const hides = schema.type === "object" || schema.type === "array";
    this.errors.push(errorFor(compiled.rule, shownPath(where), hides ? undefined : value, detail));
  }

  #message({ message }: CompiledRule, variables: Variables): string | undefined {
    const outcome = message?.evaluate(variables, this.#limit());
    if (outcome?.type !== "value" || typeof outcome.value !== "string") return undefined;
    this.#left -= outcome.cost;
    const text = outcome.value.trim();
    return text === "" || text.length > MAX_MESSAGE_BYTES || text.includes("\n") ? undefined : text;
  }
}

function overLimit(rule: ValidationRule): string {
  return (
    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run " +
    `due to call cost exceeds limit for rule: ${textOf(rule)}`
  );
}

function textOf({ rule, message = "" }: ValidationRule): string {
  return message === "" ? rule.trim() : message.trim();
}

function defaultMessage(rule: ValidationRule): string {
  return (rule.message ?? "") === "" ? `failed rule: ${textOf(rule)}` : textOf(rule);
}

/** @param value undefined where it is not shown */
function errorFor(
  rule: ValidationRule,
  path: string,
  value: Json | undefined,
  detail: string,
): FieldError {
  switch (rule.reason) {
    case "FieldValueForbidden":
      return fieldForbidden(path, detail);
    case "FieldValueRequired":
      return required(path, detail);
    case "FieldValueDuplicate":
      if (value !== undefined) return duplicate(path, value);
      return { type: "FieldValueDuplicate", field: path, message: "Duplicate value" };
    default:
      if (value !== undefined) return invalidValue(path, value, detail);
      return { type: "FieldValueInvalid", field: path, message: `Invalid value: ${detail}` };
  }
}
