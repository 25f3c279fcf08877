/**
 * Evaluation of checked expressions. Each node becomes a function once; costs are counted as
 * cel-go's interpreter counts them under Kubernetes' options (interpreter/runtimecost.go with
 * OptOptimize, PresenceTestHasCost false):
 *
 *     a name 1, a selection or index 1, a list 10, a map 30, a message 40; calls by their function
 *     has() nothing beside its operand; lists, sets and conversions of constants nothing
 */
import { defined } from "@quorate/proto";
import { budget, Interruption } from "../base/budget.ts";
import type { CallExpr, Expr, Fold, Message, Select } from "./ast.ts";
import { ACCU } from "./ast.ts";
import { type Checked, fieldName } from "./check.ts";
import type { Environment, Overload } from "./environment.ts";
import { namedType, type Type } from "./types.ts";
import {
  EvaluationError,
  fits,
  literalValue,
  mapKey,
  noSuchOverload,
  Optional,
  StructValue,
  TypeValue,
  typeOfValue,
  Uint,
} from "./values.ts";

/** Reads a variable; undefined where there is none. */
export type Variables = (name: string) => unknown;

interface Frame {
  readonly variables: Variables;
  readonly parent: Frame | undefined;
  readonly name: string;
  value: unknown;
}

type Step = (frame: Frame) => unknown;

const NO_FRAME: Frame = {
  variables: () => undefined,
  parent: undefined,
  name: "",
  value: undefined,
};

/** A program without variables of its own. @returns the value; throws EvaluationError */
export type Evaluate = (variables: Variables) => unknown;

/** What calls cost. Arguments: the target first. */
export interface CallCosts {
  cost(overload: Overload, args: readonly unknown[], result: unknown): number;
  /** Before the call: what it will cost at least, and its work in characters. */
  knownCost(overload: Overload, args: readonly unknown[]): number;
  work(overload: Overload, args: readonly unknown[]): number;
}

/**
 * Throws EvaluationError where a constant cannot be converted.
 * @param checked without faults
 */
export function evaluator(checked: Checked, environment: Environment, costs: CallCosts): Evaluate {
  const step = new Planner(checked, environment, costs).plan(checked.expr);
  return (variables) => step({ variables, parent: undefined, name: "", value: undefined });
}

/** Conversions whose results are known where their argument is. */
const CONVERSIONS: ReadonlySet<string> = new Set(
  "bool bytes double duration dyn int string timestamp uint type".split(" "),
);

class Planner {
  readonly #checked: Checked;
  readonly #environment: Environment;
  readonly #costs: CallCosts;
  /** Nodes that need no evaluation, with their values. */
  readonly #constants = new Map<Step, unknown>();

  constructor(checked: Checked, environment: Environment, costs: CallCosts) {
    this.#checked = checked;
    this.#environment = environment;
    this.#costs = costs;
  }

  plan(expr: Expr): Step {
    switch (expr.kind) {
      case "const":
        return this.#constant(literalValue(expr.value));
      case "ident":
        return this.#variable(expr.id, expr.name) ?? fail(`no such attribute(s): ${expr.name}`);
      case "select":
        return this.#select(expr);
      case "call":
        return this.#call(expr);
      case "list":
        return this.#list(expr);
      case "map":
        return this.#map(expr);
      case "message":
        return this.#message(expr);
      case "fold":
        return expr.isBinding ? this.#binding(expr) : this.#fold(expr);
    }
  }

  #constant(value: unknown): Step {
    const step: Step = () => value;
    this.#constants.set(step, value);
    return step;
  }

  /** A name that is resolved: a variable of the environment or a type, else a local variable. */
  #variable(id: number, name: string): Step | undefined {
    const known = this.#checked.names.get(id);
    const wanted = known ?? name.replace(/^\./, "");
    if (known !== undefined && this.#environment.variableNamed(known) === undefined) {
      const type = namedType(known) ?? this.#environment.types.get(known);
      return type === undefined ? undefined : this.#constant(new TypeValue(type));
    }
    if (known !== undefined) {
      return ({ variables }) => {
        budget.charge(1);
        const value = variables(wanted);
        if (value === undefined) throw new EvaluationError(`no such attribute(s): ${wanted}`);
        return value;
      };
    }
    return (frame) => {
      budget.charge(1);
      for (let at: Frame | undefined = frame; at !== undefined; at = at.parent)
        if (at.name === wanted) {
          if (at.value instanceof Failed) throw at.value.error;
          return at.value;
        }
      throw new EvaluationError(`no such attribute(s): ${wanted}`);
    };
  }

  /** Whether selections go on with what the node is, at no cost of its own. */
  #isAttribute(expr: Expr): boolean {
    if (expr.kind === "ident" || expr.kind === "select") return true;
    return expr.kind === "call" && ["_[_]", "_?._", "_[?_]", "_?_:_"].includes(expr.name);
  }

  #operand(expr: Expr): Step {
    const step = this.plan(expr);
    if (this.#isAttribute(expr)) return step;
    return (frame) => {
      const value = step(frame);
      budget.charge(1);
      return value;
    };
  }

  #select(expr: Select): Step {
    const whole = this.#checked.names.get(expr.id);
    if (whole !== undefined) return defined(this.#variable(expr.id, whole), "the name");
    const operand = this.#operand(expr.operand);
    const { field } = expr;
    if (expr.isTest) {
      return (frame) => {
        const of = operand(frame);
        const value = fieldOf(of instanceof Optional ? of.value : of, field);
        return value !== undefined;
      };
    }
    return (frame) => {
      const of = operand(frame);
      if (of instanceof Optional) return optionalField(of, field);
      const value = fieldOf(of, field);
      budget.charge(1);
      if (value !== undefined) return value;
      throw new EvaluationError(`no such key: ${field}`);
    };
  }

  #call(call: CallExpr): Step {
    const { args, name } = call;
    switch (name) {
      case "_&&_":
        return this.#logical(args, false);
      case "_||_":
        return this.#logical(args, true);
      case "_?_:_":
        return this.#ternary(args);
      case "_[_]":
        return this.#index(args, false);
      case "_[?_]":
        return this.#index(args, true);
      case "_?._": {
        const operand = this.#operand(defined(args[0], "the operand"));
        const field = (args[1] as { readonly value?: unknown } | undefined)?.value as string;
        return (frame) => {
          const of = operand(frame);
          return optionalField(of instanceof Optional ? of : Optional.of(of), field);
        };
      }
      case "@not_strictly_false":
        return this.#notStrictlyFalse(defined(args[0], "the operand"));
      default:
        return this.#function(call);
    }
  }

  #logical(args: readonly Expr[], deciding: boolean): Step {
    const [left, right] = args.map((one) => this.plan(one)) as [Step, Step];
    return (frame) => {
      let failure: unknown;
      try {
        const value = left(frame);
        if (value === deciding) return deciding;
        if (typeof value !== "boolean") failure = noSuchOverload();
      } catch (error) {
        failure = absorbed(error);
      }
      const value = right(frame);
      if (value === deciding) return deciding;
      if (failure !== undefined) throw failure;
      if (typeof value !== "boolean") throw noSuchOverload();
      return value;
    };
  }

  /** The branches of names cost what is selected from them. */
  #ternary(args: readonly Expr[]): Step {
    const [test, yes, no] = args.map((one) => this.plan(one)) as [Step, Step, Step];
    const refund = args.map((one) => (this.#rootsInName(one) ? -1 : 0));
    return (frame) => {
      const value = test(frame);
      if (typeof value !== "boolean") throw noSuchOverload();
      budget.charge(refund[value ? 1 : 2] as number);
      return value ? yes(frame) : no(frame);
    };
  }

  #rootsInName(expr: Expr): boolean {
    if (expr.kind === "ident") return true;
    if (expr.kind === "select") return !expr.isTest && this.#rootsInName(expr.operand);
    const isIndex = expr.kind === "call" && expr.name === "_[_]";
    return isIndex && this.#rootsInName(expr.args[0] as Expr);
  }

  #index(args: readonly Expr[], isOptional: boolean): Step {
    const operand = this.#operand(defined(args[0], "the operand"));
    const by = defined(args[1], "the index");
    const index = this.plan(by);
    // As with a ternary, the name itself costs nothing.
    const refund = this.#rootsInName(by) ? -1 : 0;
    return (frame) => {
      const of = operand(frame);
      const at = index(frame);
      budget.charge(refund);
      if (isOptional || of instanceof Optional) {
        if (of instanceof Optional && !of.isPresent) return of;
        const value = elementAt(of instanceof Optional ? of.value : of, at);
        if (value !== undefined) budget.charge(1);
        return value === undefined ? Optional.none : Optional.of(value);
      }
      budget.charge(1);
      const value = elementAt(of, at);
      if (value !== undefined) return value;
      throw new EvaluationError(
        Array.isArray(of) ? `index out of bounds: ${shownKey(at)}` : `no such key: ${shownKey(at)}`,
      );
    };
  }

  #notStrictlyFalse(arg: Expr): Step {
    const step = this.plan(arg);
    return (frame) => {
      let value: unknown;
      try {
        value = step(frame);
      } catch (error) {
        absorbed(error);
      }
      budget.charge(1);
      return value !== false;
    };
  }

  #function(call: CallExpr): Step {
    const overloads = this.#checked.overloads.get(call.id) ?? [];
    const name = this.#checked.functions.get(call.id) ?? call.name.replace(/^\./, "");
    const isMember = overloads[0]?.isMember === true;
    const args = [...(isMember && call.target !== undefined ? [call.target] : []), ...call.args];
    const steps = args.map((one) => this.plan(one));
    // A call may turn out to be one of another overload where its arguments are dyn.
    const all = overloads.length === 1 ? overloads : this.#all(name, isMember, args.length);
    const isKnown = args.every((one) => isStatic(this.#checked.types.get(one.id)));
    const costs = this.#costs;
    const choose = chooser(overloads.length === 1 ? overloads : all, isKnown);
    const [accu, added] = args;
    if (name === "_+_" && accu?.kind === "ident" && accu.name === ACCU && added?.kind === "list")
      return appending(steps[0] as Step, steps[1] as Step);
    if (isMember && (name === "or" || name === "orValue"))
      return alternative(steps[0] as Step, steps[1] as Step, name === "orValue");
    const isFree =
      name === "@in" && args[1]?.kind === "list" && this.#constants.has(steps[1] as Step);
    if (CONVERSIONS.has(name) && steps.length === 1 && this.#constants.has(steps[0] as Step)) {
      const values = [this.#constants.get(steps[0] as Step)];
      return this.#constant(choose(values).call(...(values as never[])));
    }
    return (frame) => {
      try {
        const values = steps.map((step) => step(frame));
        const overload = choose(values);
        budget.reserve(costs.knownCost(overload, values));
        budget.walk(costs.work(overload, values));
        const value = overload.call(...(values as never[]));
        if (!isFree) budget.charge(costs.cost(overload, values, value));
        return value;
      } catch (error) {
        absorbed(error);
        budget.charge(1);
        throw error;
      }
    };
  }

  #all(name: string, isMember: boolean, count: number): readonly Overload[] {
    const all = this.#environment.functionNamed(name) ?? [];
    return all.filter((one) => one.isMember === isMember && one.params.length === count);
  }

  #list({ elements }: Expr & { kind: "list" }): Step {
    const steps = elements.map(({ value }) => this.plan(value));
    if (steps.every((step) => this.#constants.has(step)) && !elements.some((it) => it.isOptional))
      return this.#constant(steps.map((step) => this.#constants.get(step)));
    return (frame) => {
      const list: unknown[] = [];
      for (const [i, step] of steps.entries()) {
        const value = step(frame);
        if (elements[i]?.isOptional !== true) list.push(value);
        else if (!(value instanceof Optional)) throw noSuchOverload();
        else if (value.isPresent) list.push(value.value);
      }
      budget.charge(10);
      return list;
    };
  }

  #map({ entries }: Expr & { kind: "map" }): Step {
    const steps = entries.map(({ key, value, isOptional }) => ({
      key: this.plan(key),
      value: this.plan(value),
      isOptional,
    }));
    const build: Step = (frame) => {
      const map = new Map<unknown, unknown>();
      for (const { key, value, isOptional } of steps) {
        const name = mapKey(key(frame));
        if (name === undefined) throw new EvaluationError("unsupported key type");
        const element = value(frame);
        if (!isOptional) map.set(name, element);
        else if (!(element instanceof Optional)) throw noSuchOverload();
        else if (element.isPresent) map.set(name, element.value);
      }
      return map;
    };
    const isConstant = steps.every(
      ({ key, value, isOptional }) =>
        !isOptional && this.#constants.has(key) && this.#constants.has(value),
    );
    if (isConstant) return this.#constant(build(NO_FRAME));
    return (frame) => {
      const map = build(frame);
      budget.charge(30);
      return map;
    };
  }

  #message({ type, fields }: Message): Step {
    const made = this.#environment.messageNamed(type);
    if (made === undefined) return fail(`unknown type: ${type}`);
    const steps = fields.map(({ name, value, isOptional }) => ({
      name,
      value: this.plan(value),
      isOptional,
    }));
    return (frame) => {
      const values = new Map<string, unknown>();
      for (const { name, value, isOptional } of steps) {
        const field = value(frame);
        if (!isOptional) values.set(name, field);
        else if (!(field instanceof Optional)) throw noSuchOverload();
        else if (field.isPresent) values.set(name, field.value);
      }
      budget.charge(40);
      return made.make(values);
    };
  }

  #binding({ accu, init, result }: Fold): Step {
    const value = this.plan(init);
    const then = this.plan(result);
    return (frame) =>
      then({ variables: frame.variables, parent: frame, name: accu, value: value(frame) });
  }

  #fold(fold: Fold): Step {
    const range = this.plan(fold.range);
    const init = this.plan(fold.init);
    const [condition, step, result] = [fold.condition, fold.step, fold.result].map((one) =>
      this.plan(one),
    ) as [Step, Step, Step];
    const absorbs = fold.condition.kind === "call";
    return (frame) => {
      const over = range(frame);
      const { variables } = frame;
      const value = ownCopy(init(frame));
      const accu: Frame = { variables, parent: frame, name: fold.accu, value };
      const first: Frame = { variables, parent: accu, name: fold.first, value: undefined };
      const { second: name } = fold;
      const second = name && { variables, parent: first, name, value: undefined as unknown };
      const inner: Frame = second || first;
      const once = (): boolean => {
        if (condition(inner) === false) return false;
        try {
          accu.value = step(inner);
        } catch (error) {
          if (!absorbs) throw error;
          accu.value = new Failed(absorbed(error));
        }
        return true;
      };
      if (Array.isArray(over)) {
        for (let i = 0; i < over.length; i++) {
          first.value = second ? BigInt(i) : over[i];
          if (second) second.value = over[i];
          if (!once()) break;
        }
      } else if (over instanceof Map) {
        for (const [key, value] of over) {
          first.value = key;
          if (second) second.value = value;
          if (!once()) break;
        }
      } else throw noSuchOverload();
      return result(accu);
    };
  }
}

/** An error of one element, which waits for another one that decides. */
class Failed {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** What a loop adds to in place. */
function ownCopy(value: unknown): unknown {
  if (Array.isArray(value)) return [...value];
  return value instanceof Map ? new Map(value) : value;
}

/** An error that "||" and "&&" may hide; a budget that is used up is none. */
function absorbed(error: unknown): unknown {
  if (error instanceof Interruption) throw error;
  return error;
}

function fail(message: string): Step {
  return () => {
    throw new EvaluationError(message);
  };
}

/** Undefined where there is no such field. */
function fieldOf(of: unknown, name: string): unknown {
  if (of instanceof StructValue) return of.field(fieldName(of.celType, name));
  return of instanceof Map ? of.get(name) : undefined;
}

function optionalField(of: Optional, name: string): unknown {
  if (!of.isPresent) return of;
  const value = fieldOf(of.value, name);
  if (value === undefined) return Optional.none;
  budget.charge(1);
  return value instanceof Optional ? value : Optional.of(value);
}

/** Undefined where there is no such element. */
function elementAt(of: unknown, index: unknown): unknown {
  const key = mapKey(index);
  if (of instanceof Map) return key === undefined ? undefined : of.get(key);
  if (of instanceof StructValue && typeof key === "string") return of.field(key);
  if (!Array.isArray(of)) return undefined;
  if (typeof key === "number") throw new EvaluationError(`unsupported index value ${key} in list`);
  if (typeof key !== "bigint")
    throw new EvaluationError(`unsupported index type '${typeOfValue(index).name}' in list`);
  return key >= 0n && key < of.length ? of[Number(key)] : undefined;
}

function shownKey(key: unknown): string {
  return String(key instanceof Uint ? key.value : key);
}

/** optional.or(other), optional.orValue(value): the other one is evaluated where it is needed. */
function alternative(left: Step, right: Step, unwraps: boolean): Step {
  return (frame) => {
    const value = left(frame);
    if (!(value instanceof Optional)) throw noSuchOverload();
    if (!value.isPresent) return right(frame);
    return unwraps ? value.value : value;
  };
}

/** The list of a loop grows in place. */
function appending(list: Step, added: Step): Step {
  return (frame) => {
    const all = list(frame) as unknown[];
    for (const one of added(frame) as unknown[]) all.push(one);
    budget.charge(1);
    return all;
  };
}

/** Whether values of the type need no look at run time. */
function isStatic(type: Type | undefined): boolean {
  return type !== undefined && type.kind !== "dyn" && type.params.every(isStatic);
}

/**
 * Finds the overload whose types the arguments have.
 * @param isKnown whether the checker knows all types
 */
function chooser(
  overloads: readonly Overload[],
  isKnown: boolean,
): (args: readonly unknown[]) => Overload {
  const isDeep = overloads.length > 1;
  const [only] = overloads;
  if (isKnown && !isDeep && only !== undefined) return () => only;
  return (args) => {
    for (const overload of overloads)
      if (args.every((one, i) => fits(one, overload.params[i] as Type, isDeep))) return overload;
    throw noSuchOverload();
  };
}
