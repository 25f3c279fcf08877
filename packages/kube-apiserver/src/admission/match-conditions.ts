/**
 * matchConditions of webhooks: expressions in CEL over `object`, `oldObject`, `request` and
 * `authorizer` (apiserver: pkg/admission/plugin/webhook/matchconditions). All must be true.
 */

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** The values of an expression's variables. */
export interface ConditionVariables {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly request: unknown;
}

/** Evaluates a compiled expression. Throws Error where that fails. */
export type CompiledCondition = (variables: ConditionVariables) => boolean;

/** Compiles an expression; returns the reason where it is not valid. */
export type ConditionCompiler = (
  expression: string,
) => CompiledCondition | { readonly error: string };

/** A compiler that loads its library when the first condition needs it. */
export interface ConditionEngine {
  /** Resolves when `compile` knows which expressions are valid. */
  load(): Promise<void>;
  readonly compile: ConditionCompiler;
}

export interface Conditions {
  readonly isEmpty: boolean;
  /** Whether all are true; one false one outweighs failures. Rejects with Error for failures. */
  matches(variables: ConditionVariables): Promise<boolean>;
}

/** Compiles the conditions with the first request that they are for. */
export function compileConditions(
  conditions: readonly MatchCondition[],
  engine: ConditionEngine,
): Conditions {
  let compiled: readonly ReturnType<ConditionCompiler>[] | undefined;
  return {
    isEmpty: conditions.length === 0,
    async matches(variables) {
      await engine.load();
      compiled ??= conditions.map(({ expression }) => engine.compile(expression.trim()));
      return areTrue(compiled, variables);
    },
  };
}

function areTrue(
  compiled: readonly ReturnType<ConditionCompiler>[],
  variables: ConditionVariables,
): boolean {
  const failures: string[] = [];
  for (const condition of compiled) {
    if (typeof condition !== "function") {
      failures.push(`compilation error: ${condition.error}`);
      continue;
    }
    try {
      if (!condition(variables)) return false;
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  if (failures.length > 0) throw new Error(failures.join(", "));
  return true;
}
