/**
 * Expressions over a request that is admitted: those of policies, and match conditions of webhooks
 * (apiserver: pkg/admission/plugin/cel). A policy's variables are evaluated when an expression
 * first reads them, with a budget of their own.
 *
 *     const set = expressions.set({ hasParams: false, hasVariables: true });
 *     set.declare("replicas", "object.spec.replicas");
 *     const rule = set.compile("variables.replicas < 5", ["bool"]);
 *     const outcome = await new Evaluation(set, activation, BUDGET, pauses).run(rule);
 */
import type { Pauses } from "@quorate/host";
import {
  type JsonObject,
  jsonOf,
  type KubeObject,
  type Schema,
  type UserInfo,
} from "@quorate/kube-storage";
import type { AuthorizerAttributes } from "../../authz/authorizer.ts";
import { budget, PER_CALL_BUDGET } from "./base/budget.ts";
import { type CelEngine, loadCel } from "./engine.ts";
import { CompileError } from "./faults.ts";
import {
  AUTHORIZER,
  authorizerValues,
  type Decisions,
  PendingDecision,
  RESOURCE_CHECK,
} from "./functions/authorization.ts";
import { registerPatchTypes } from "./functions/patch-types.ts";
import type { Environment } from "./lang/environment.ts";
import { DYN, shownType, struct, type Type } from "./lang/types.ts";
import { EvaluationError, StructValue } from "./lang/values.ts";
import type { Outcome, Program } from "./program.ts";
import { type CelType, celTypeOf, convertDynamic } from "./types.ts";

const EXCEEDED = "operation cancelled: actual cost limit exceeded";
/** The text of an evaluation whose budget is used up. */
export const OUT_OF_BUDGET =
  "validation failed due to running out of cost budget, no further validation rules will be run";

/** Thrown where the budget of an evaluation is used up; its message is what clients read. */
export class OutOfBudgetError extends EvaluationError {
  constructor() {
    super(OUT_OF_BUDGET);
  }
}

/** An expression, with its program or with the reason why there is none. */
export interface CompiledExpression {
  readonly expression: string;
  readonly error: string | undefined;
  readonly program: Program | undefined;
}

export interface ExpressionSetOptions {
  readonly hasParams: boolean;
  readonly hasVariables: boolean;
  /** Types of variables of unknown type, for type checking. */
  readonly object?: Type | undefined;
  readonly params?: Type | undefined;
}

/** What one expression may use besides. */
export interface ExpressionScope {
  readonly hasAuthorizer?: boolean;
  readonly hasPatchTypes?: boolean;
}

/** The compiler, whose library is loaded when the first expression needs it. */
export class RequestExpressions {
  #engine: CelEngine | undefined;

  /** Resolves when sets can be made. */
  async load(): Promise<void> {
    this.#engine ??= await loadCel();
  }

  /** For the expressions of one policy. Throws Error before `load` has ended. */
  set(options: ExpressionSetOptions): ExpressionSet {
    if (this.#engine === undefined) throw new Error("expressions are being loaded");
    return new ExpressionSet(this.#engine, options);
  }
}

/** Types of variables that other expressions see; all others are dyn there. */
const COMPOSED: ReadonlySet<string> = new Set(
  "bool bytes double duration int null string timestamp uint".split(" "),
);

function composedType(type: Type): Type {
  if (type.kind === "list" || type.kind === "map")
    return { ...type, params: type.params.map(composedType) };
  return COMPOSED.has(type.kind) ? type : DYN;
}

export class ExpressionSet {
  readonly #engine: CelEngine;
  readonly #options: ExpressionSetOptions;
  readonly #types = new Map<string, Type>();
  readonly #variablesType = struct("kubernetes.variables", this.#types);
  readonly #environments = new Map<string, Environment>();
  readonly variables = new Map<string, CompiledExpression>();

  constructor(engine: CelEngine, options: ExpressionSetOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  get variablesType(): Type {
    return this.#variablesType;
  }

  /** Adds a variable, which the expressions that follow may read. */
  declare(name: string, expression: string): CompiledExpression {
    const compiled = this.compile(expression, []);
    this.variables.set(name, compiled);
    this.#types.set(name, composedType(compiled.program?.type ?? DYN));
    return compiled;
  }

  /** @param returns the types that the expression may have, as errors show them; none: any type */
  compile(
    expression: string,
    returns: readonly string[],
    scope: ExpressionScope = {},
  ): CompiledExpression {
    const failed = (error: string) => ({ expression, error, program: undefined });
    try {
      const program = this.#engine.compile(expression, "any", this.#environment(scope));
      const type = typeText(program.type);
      if (returns.length === 0 || returns.includes(type))
        return { expression, error: undefined, program };
      const wanted = returns.length === 1 ? returns[0] : `one of [${returns.join(" ")}]`;
      return failed(`must evaluate to ${wanted} but got ${type}`);
    } catch (error) {
      if (error instanceof CompileError) return failed(error.message);
      throw error;
    }
  }

  #environment({ hasAuthorizer = true, hasPatchTypes = false }: ExpressionScope): Environment {
    const key = `${hasAuthorizer} ${hasPatchTypes}`;
    const known = this.#environments.get(key);
    if (known !== undefined) return known;
    const { hasParams, hasVariables, object = DYN, params = DYN } = this.#options;
    const made = this.#engine.base
      .extend()
      .variable("object", object)
      .variable("oldObject", object)
      .variable("request", REQUEST_TYPE.type)
      .variable("namespaceObject", NAMESPACE_TYPE.type);
    if (hasParams) made.variable("params", params);
    if (hasVariables) made.variable("variables", this.#variablesType);
    if (hasAuthorizer)
      made
        .variable("authorizer", AUTHORIZER)
        .variable("authorizer.requestResource", RESOURCE_CHECK);
    if (hasPatchTypes) registerPatchTypes(made);
    this.#environments.set(key, made);
    return made;
  }
}

function typeText(type: Type): string {
  return type.kind === "null" ? "null_type" : shownType(type);
}

/** What the variables of a request are. */
export interface Activation {
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly request: JsonObject;
  readonly namespace: KubeObject | undefined;
  readonly params: KubeObject | undefined;
  readonly user: UserInfo;
  readonly decisions: Decisions;
  /** For authorizer.requestResource. */
  readonly resource: Pick<
    AuthorizerAttributes,
    "group" | "resource" | "subresource" | "namespace" | "name"
  >;
}

export type Evaluated = { readonly value: unknown } | { readonly error: string };

/** Evaluates expressions of a set for one request, within one budget. */
export class Evaluation {
  readonly #activation: Activation;
  readonly #pauses: Pauses;
  readonly #variables: VariablesValue;
  readonly #authorizer: ReturnType<typeof authorizerValues>;
  #left: number;

  /**
   * @param limit what all expressions may cost together
   * @param pauses let other work run between expressions
   */
  constructor(set: ExpressionSet, activation: Activation, limit: number, pauses: Pauses) {
    this.#activation = activation;
    this.#left = limit;
    this.#pauses = pauses;
    this.#variables = new VariablesValue(set, (name) => this.#valueOf(name));
    const { decisions, user, resource } = activation;
    this.#authorizer = authorizerValues(decisions, user, resource);
  }

  /** What is left of the budget. */
  get left(): number {
    return this.#left;
  }

  /** Rejects with OutOfBudgetError. */
  async run({ expression, error, program }: CompiledExpression): Promise<Evaluated> {
    if (program === undefined) return { error: `compilation error: ${error}` };
    const outcome = await this.#outcome(program);
    const cost = outcome.cost + this.#variables.takeCost();
    if (cost > this.#left) throw new OutOfBudgetError();
    this.#left -= cost;
    await this.#pauses.next();
    if (outcome.type === "value") return { value: outcome.value };
    const why = outcome.type === "exceeded" ? EXCEEDED : outcome.message;
    return { error: `expression '${expression}' resulted in error: ${why}` };
  }

  /** Again after each decision that the expression asks for. */
  async #outcome(program: Program): Promise<Outcome> {
    for (;;) {
      try {
        return program.evaluate((name) => this.#valueOf(name), PER_CALL_BUDGET);
      } catch (error) {
        if (!(error instanceof PendingDecision)) throw error;
        await this.#activation.decisions.ask(error);
      }
    }
  }

  #valueOf(name: string): unknown {
    const { object, oldObject, params, request, namespace } = this.#activation;
    switch (name) {
      case "object":
        return dynamic(object);
      case "oldObject":
        return dynamic(oldObject);
      case "params":
        return dynamic(params);
      case "request":
        return REQUEST_TYPE.convert(request);
      case "namespaceObject":
        return namespace === undefined ? null : NAMESPACE_TYPE.convert(jsonOf(namespace));
      case "variables":
        return this.#variables;
      case "authorizer":
        return this.#authorizer.authorizer;
      case "authorizer.requestResource":
        return this.#authorizer.requestResource;
      default:
        return undefined;
    }
  }
}

function dynamic(value: KubeObject | undefined): unknown {
  return value === undefined ? null : convertDynamic(jsonOf(value));
}

/** The variables of a policy, evaluated once each. */
class VariablesValue extends StructValue {
  readonly celType: Type;
  readonly #set: ExpressionSet;
  readonly #values: (name: string) => unknown;
  readonly #known = new Map<string, Evaluated>();
  #cost = 0;

  constructor(set: ExpressionSet, values: (name: string) => unknown) {
    super();
    this.celType = set.variablesType;
    this.#set = set;
    this.#values = values;
  }

  /** What variables have cost since the last call. */
  takeCost(): number {
    const cost = this.#cost;
    this.#cost = 0;
    return cost;
  }

  field(name: string): unknown {
    const compiled = this.#set.variables.get(name);
    if (compiled === undefined) return undefined;
    let known = this.#known.get(name);
    if (known === undefined) {
      known = this.#evaluate(name, compiled);
      this.#known.set(name, known);
    }
    if ("error" in known) throw new EvaluationError(known.error);
    return known.value;
  }

  #evaluate(name: string, { error, program }: CompiledExpression): Evaluated {
    const prefix = `composited variable "${name}" fails to`;
    if (program === undefined) return { error: `${prefix} compile: ${error}` };
    const outcome = budget.nested(() => program.evaluate(this.#values, PER_CALL_BUDGET));
    this.#cost += outcome.cost;
    if (outcome.type === "value") return { value: outcome.value };
    const why = outcome.type === "exceeded" ? EXCEEDED : outcome.message;
    return { error: `${prefix} evaluate: ${why}` };
  }

  equals(other: unknown): boolean {
    return other === this;
  }
}

const TEXT: Schema = { type: "string" };
const TEXTS: Schema = { type: "array", items: TEXT };
const TIME: Schema = { type: "string", format: "date-time" };
const ANYTHING: Schema = { "x-kubernetes-int-or-string": true };

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties };
}

function mapOf(additionalProperties: Schema): Schema {
  return { type: "object", additionalProperties };
}

function texts(names: string): Record<string, Schema> {
  return Object.fromEntries(names.split(" ").map((name) => [name, TEXT]));
}

const KIND = object(texts("group version kind"));
const RESOURCE = object(texts("group version resource"));

const REQUEST = object({
  ...texts("subResource requestSubResource name namespace operation"),
  kind: KIND,
  resource: RESOURCE,
  requestKind: KIND,
  requestResource: RESOURCE,
  userInfo: object({ ...texts("username uid"), groups: TEXTS, extra: mapOf(TEXTS) }),
  dryRun: { type: "boolean" },
  options: ANYTHING,
});

const NAMESPACE = object({
  metadata: object({
    ...texts("name generateName namespace UID resourceVersion"),
    labels: mapOf(TEXT),
    annotations: mapOf(TEXT),
    creationTimestamp: TIME,
    deletionTimestamp: TIME,
    deletionGracePeriodSeconds: { type: "integer" },
    generation: { type: "integer" },
    finalizers: TEXTS,
  }),
  spec: object({ finalizers: TEXTS }),
  status: object({
    phase: TEXT,
    conditions: {
      type: "array",
      items: object({ ...texts("status type message reason"), lastTransitionTime: TIME }),
    },
  }),
});

export const REQUEST_TYPE = celTypeOf(REQUEST, false, "kubernetes.AdmissionRequest") as CelType;
export const NAMESPACE_TYPE = celTypeOf(NAMESPACE, false, "kubernetes.Namespace") as CelType;
