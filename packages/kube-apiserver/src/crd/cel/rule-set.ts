/** The rules (x-kubernetes-validations) of one schema, compiled. */
import type { Schema, ValidationRule } from "@quorate/kube-storage";
import { findField } from "../definition/field-path.ts";
import type { RawSchema } from "../definition/raw-schema.ts";
import type { CelEngine } from "./engine.ts";
import { CompileError } from "./faults.ts";
import type { Environment } from "./lang/environment.ts";
import { DYN, optionalOf } from "./lang/types.ts";
import type { Program } from "./program.ts";
import { type CelType, celTypeOf } from "./types.ts";

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Why the rule does not compile. */
  readonly error?: string;
  readonly program?: Program;
  readonly messageError?: string;
  readonly message?: Program;
  readonly usesOldSelf: boolean;
  /** The rule's fieldPath, as errors show it; "" for the value itself. */
  readonly fieldPath: string;
}

export interface RuleSet {
  readonly self: CelType | undefined;
  readonly rules: readonly CompiledRule[];
}

/** @param isResource whether the schema is that of a whole resource */
export function compileRules(schema: Schema, isResource: boolean, engine: CelEngine): RuleSet {
  const rules = schema["x-kubernetes-validations"] ?? [];
  const self = celTypeOf(schema, isResource);
  const compiler = new RuleCompiler(self, engine);
  return { self, rules: rules.map((rule) => compiler.compile(rule, schema)) };
}

class RuleCompiler {
  readonly #self: CelType | undefined;
  readonly #engine: CelEngine;
  readonly #environments = new Map<boolean, Environment>();

  constructor(self: CelType | undefined, engine: CelEngine) {
    this.#self = self;
    this.#engine = engine;
  }

  /** @param optional whether oldSelf may be missing */
  #environment(optional: boolean): Environment {
    const present = this.#environments.get(optional);
    if (present !== undefined) return present;
    const type = this.#self?.type ?? DYN;
    const made = this.#engine.base
      .extend()
      .variable("self", type)
      .variable("oldSelf", optional ? optionalOf(type) : type);
    this.#environments.set(optional, made);
    return made;
  }

  compile(rule: ValidationRule, schema: Schema): CompiledRule {
    const { messageExpression = "", fieldPath = "", optionalOldSelf = false } = rule;
    const found = fieldPath === "" ? "" : findField(fieldPath, schema as RawSchema, true);
    const base = {
      rule,
      usesOldSelf: false,
      fieldPath: typeof found === "string" ? "" : found.path,
    };
    const environment = this.#environment(optionalOldSelf);
    let program: Program;
    try {
      program = this.#engine.compile(rule.rule.trim(), "bool", environment);
    } catch (error) {
      return { ...base, error: reason(error, "cel expression") };
    }
    const compiled = { ...base, program, usesOldSelf: program.uses("oldSelf") };
    if (messageExpression === "") return compiled;
    try {
      const message = this.#engine.compile(messageExpression, "string", environment);
      return { ...compiled, message };
    } catch (error) {
      const text = reason(error, "messageExpression");
      const failed = text.startsWith("compilation failed") ? `messageExpression ${text}` : text;
      return { ...compiled, messageError: failed };
    }
  }
}

function reason(error: unknown, what: string): string {
  if (!(error instanceof CompileError)) throw error;
  return error.message.startsWith("must") ? `${what} ${error.message}` : error.message;
}
