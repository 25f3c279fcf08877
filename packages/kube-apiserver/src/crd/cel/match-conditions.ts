/** Conditions of webhooks in CEL, over `object`, `oldObject` and `request`. */

import type { Json } from "@quorate/kube-storage";
import type { CompiledCondition, ConditionCompiler } from "../../admission/match-conditions.ts";
import { PER_CALL_BUDGET } from "./base/budget.ts";
import { type CelEngine, loadCel } from "./engine.ts";
import type { Environment } from "./lang/environment.ts";
import { DYN } from "./lang/types.ts";
import { CompileError, compile } from "./program.ts";
import { convertDynamic } from "./types.ts";

/**
 * Compiles conditions. The CEL library loads with the first one; until it is there, conditions
 * fail. A caller that has to know whether an expression is valid awaits `load` first.
 */
export class MatchConditionCompiler {
  #cel: { readonly engine: CelEngine; readonly environment: Environment } | undefined;

  async load(): Promise<void> {
    const engine = await loadCel();
    this.#cel ??= {
      engine,
      environment: engine.base
        .extend()
        .variable("object", DYN)
        .variable("oldObject", DYN)
        .variable("request", DYN),
    };
  }

  readonly compile: ConditionCompiler = (expression) => {
    if (this.#cel !== undefined) return this.#compiled(expression, this.#cel);
    void this.load();
    let made: ReturnType<ConditionCompiler> | undefined;
    return (variables) => {
      if (this.#cel === undefined) throw new Error("expressions are being loaded");
      made ??= this.#compiled(expression, this.#cel);
      if (typeof made !== "function") throw new Error(made.error);
      return made(variables);
    };
  };

  #compiled(
    expression: string,
    { engine, environment }: { readonly engine: CelEngine; readonly environment: Environment },
  ): CompiledCondition | { readonly error: string } {
    try {
      const program = compile(expression, "bool", environment, engine);
      return ({ object, oldObject, request }) => {
        const values: Readonly<Record<string, unknown>> = { object, oldObject, request };
        const outcome = program.evaluate((name) => celValueOf(values[name]), PER_CALL_BUDGET);
        if (outcome.type === "exceeded") throw new Error("actual cost limit exceeded");
        if (outcome.type === "error") throw new Error(outcome.message);
        return outcome.value === true;
      };
    } catch (error) {
      if (error instanceof CompileError) return { error: error.message };
      throw error;
    }
  }
}

function celValueOf(value: unknown): unknown {
  return value === undefined ? null : convertDynamic(value as Json);
}
