/** The type checker (cel-go: checker/checker.go). Texts and places of errors are cel-go's. */
import { defined } from "@quorate/proto";
import { KEYWORDS } from "../base/names.ts";
import { type CallExpr, type Expr, type Fold, type Message, qualifiedName } from "./ast.ts";
import { type Environment, type Overload, paramsIn } from "./environment.ts";
import {
  BOOL,
  DYN,
  ERROR,
  INT,
  isDynOrError,
  isOptional,
  listOf,
  mapOf,
  namedType,
  optionalOf,
  Substitutions,
  sameType,
  shownType,
  type Type,
  typeOf,
  unwrapped,
} from "./types.ts";
import { literalValue, typeOfValue } from "./values.ts";

export interface Fault {
  readonly at: number;
  readonly message: string;
}

/** What the checker found out about each node, by its id. */
export interface Checked {
  readonly expr: Expr;
  readonly types: ReadonlyMap<number, Type>;
  /** Of calls: the overloads that may be meant. */
  readonly overloads: ReadonlyMap<number, readonly Overload[]>;
  /** Of names and selections that are a variable or a type of that whole name. */
  readonly names: ReadonlyMap<number, string>;
  /** Of calls: the name of the function, where the target is a part of it. */
  readonly functions: ReadonlyMap<number, string>;
  readonly faults: readonly Fault[];
}

/** The name of a field in its type: a word of the language is escaped. */
export function fieldName(type: Type, name: string): string {
  if (type.fields?.has(name) === true || !KEYWORDS.has(name)) return name;
  return `__${name}__`;
}

type Scope = ReadonlyMap<string, Type>;

export function check(expr: Expr, environment: Environment): Checked {
  return new Checker(environment).run(expr);
}

class Checker {
  readonly #environment: Environment;
  readonly #types = new Map<number, Type>();
  readonly #overloads = new Map<number, readonly Overload[]>();
  readonly #names = new Map<number, string>();
  readonly #functions = new Map<number, string>();
  readonly #faults: Fault[] = [];
  readonly #known = new Substitutions();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  run(expr: Expr): Checked {
    this.#check(expr, new Map());
    const types = new Map<number, Type>();
    for (const [id, type] of this.#types) types.set(id, this.#known.apply(type, "dyn"));
    return {
      expr,
      types,
      overloads: this.#overloads,
      names: this.#names,
      functions: this.#functions,
      faults: this.#faults.sort((a, b) => a.at - b.at),
    };
  }

  #fault(at: number, message: string): Type {
    this.#faults.push({ at, message });
    return ERROR;
  }

  #check(expr: Expr, scope: Scope): Type {
    const type = this.#typeOf(expr, scope);
    this.#types.set(expr.id, type);
    return type;
  }

  #typeOf(expr: Expr, scope: Scope): Type {
    switch (expr.kind) {
      case "const":
        return typeOfValue(literalValue(expr.value));
      case "ident": {
        const found = this.#variable(expr.id, expr.name, scope);
        const name = expr.name.replace(/^\./, "");
        return found ?? this.#fault(expr.at, `undeclared reference to '${name}' (in container '')`);
      }
      case "select": {
        const whole = expr.isTest ? undefined : qualifiedName(expr);
        const found = whole === undefined ? undefined : this.#variable(expr.id, whole, scope, true);
        if (found !== undefined) return found;
        const selected = this.#field(expr.at, expr.operand, expr.field, scope, false);
        return expr.isTest ? BOOL : selected;
      }
      case "call":
        return this.#call(expr, scope);
      case "list":
        return this.#list(expr, scope);
      case "map":
        return this.#map(expr, scope);
      case "message":
        return this.#message(expr, scope);
      case "fold":
        return this.#fold(expr, scope);
    }
  }

  /** A local variable, one of the environment, or a type. @param isQualified none that is local */
  #variable(id: number, name: string, scope: Scope, isQualified = false): Type | undefined {
    const isGlobal = name.startsWith(".");
    const plain = isGlobal ? name.slice(1) : name;
    const local = isGlobal || isQualified ? undefined : scope.get(plain);
    if (local !== undefined) return local;
    if (isQualified && scope.has(plain.split(".", 1)[0] as string)) return undefined;
    const known = this.#environment.variableNamed(plain);
    const type = namedType(plain) ?? this.#environment.types.get(plain);
    if (known === undefined && type === undefined) return undefined;
    this.#names.set(id, plain);
    return known ?? typeOf(defined(type, "the type"));
  }

  #field(at: number, operand: Expr, name: string, scope: Scope, isOptionalResult: boolean): Type {
    const of = this.#known.apply(this.#check(operand, scope));
    const target = unwrapped(of);
    let result: Type;
    if (target.kind === "map") result = defined(target.params[1], "the value's type");
    else if (target.kind === "struct") {
      result =
        target.fields?.get(fieldName(target, name)) ?? this.#fault(at, `undefined field '${name}'`);
    } else if (target.kind === "param") {
      this.#known.isAssignable(DYN, target);
      result = DYN;
    } else {
      if (!isDynOrError(target))
        this.#fault(at, `type '${shownType(target)}' does not support field selection`);
      result = DYN;
    }
    return isOptional(of) || isOptionalResult ? optionalOf(unwrapped(result)) : result;
  }

  #call(call: CallExpr, scope: Scope): Type {
    const { name, args, target, at } = call;
    if (name === "_?._") {
      const [operand, field] = args;
      const value = field?.kind === "const" ? String(field.value) : "";
      return this.#field(at, defined(operand, "the operand"), value, scope, true);
    }
    const types = args.map((one) => this.#check(one, scope));
    if (target === undefined) return this.#resolved(call, name.replace(/^\./, ""), types, false);
    const prefix = qualifiedName(target);
    const whole = `${prefix}.${name}`;
    if (prefix !== undefined && this.#environment.functionNamed(whole) !== undefined) {
      this.#functions.set(call.id, whole);
      return this.#resolved(call, whole, types, false);
    }
    return this.#resolved(call, name, [this.#check(target, scope), ...types], true);
  }

  #resolved(call: CallExpr, name: string, args: readonly Type[], isMember: boolean): Type {
    const overloads = this.#environment.functionNamed(name);
    if (overloads === undefined)
      return this.#fault(call.at, `undeclared reference to '${name}' (in container '')`);
    if (name === "_&&_" || name === "_||_") return this.#logical(call, overloads, args);
    const found: Overload[] = [];
    let result: Type | undefined;
    for (const overload of overloads) {
      if (overload.isMember !== isMember) continue;
      const fresh = new Map(paramsIn(overload).map((one) => [one.name, this.#known.fresh()]));
      const params = overload.params.map((one) => instantiated(one, fresh));
      if (!this.#known.areAssignable(args, params)) continue;
      found.push(overload);
      const own = this.#known.apply(instantiated(overload.result, fresh));
      if (result === undefined) result = own;
      else if (result.kind !== "dyn" && !sameType(own, result)) result = DYN;
    }
    if (result === undefined) {
      const shown = args.map((one) => shownType(this.#known.apply(one, "dyn")));
      const [first = "", ...rest] = shown;
      const text = isMember ? `${first}.(${rest.join(", ")})` : `(${shown.join(", ")})`;
      return this.#fault(call.at, `found no matching overload for '${name}' applied to '${text}'`);
    }
    this.#overloads.set(call.id, found);
    return result;
  }

  #logical(call: CallExpr, overloads: readonly Overload[], args: readonly Type[]): Type {
    let isWrong = false;
    for (const [i, type] of args.entries()) {
      if (this.#known.isAssignable(type, BOOL)) continue;
      isWrong = true;
      this.#fault(call.args[i]?.at ?? call.at, mismatch(BOOL, this.#known.apply(type)));
    }
    if (isWrong) return ERROR;
    this.#overloads.set(call.id, overloads);
    return BOOL;
  }

  #list(expr: Expr & { kind: "list" }, scope: Scope): Type {
    let item: Type | undefined;
    for (const { value, isOptional: optional } of expr.elements) {
      const type = this.#element(value, optional, scope);
      item = this.#joined(item, type);
    }
    return listOf(item ?? this.#known.fresh());
  }

  #element(value: Expr, optional: boolean, scope: Scope): Type {
    const type = this.#check(value, scope);
    if (!optional) return type;
    const known = this.#known.apply(type);
    if (!isOptional(known) && !isDynOrError(known))
      this.#fault(value.at, mismatch(optionalOf(known), known));
    return unwrapped(known);
  }

  #map(expr: Expr & { kind: "map" }, scope: Scope): Type {
    let key: Type | undefined;
    let item: Type | undefined;
    for (const entry of expr.entries) {
      key = this.#joined(key, this.#check(entry.key, scope));
      const type = this.#element(entry.value, entry.isOptional, scope);
      item = this.#joined(item, type);
    }
    return mapOf(key ?? this.#known.fresh(), item ?? this.#known.fresh());
  }

  /** The type of both. */
  #joined(before: Type | undefined, type: Type): Type {
    if (before === undefined) return type;
    return this.#known.isAssignable(before, type) ? this.#known.mostGeneral(before, type) : DYN;
  }

  #message({ type: name, at, fields }: Message, scope: Scope): Type {
    const message = this.#environment.messageNamed(name);
    if (message === undefined)
      return this.#fault(at, `undeclared reference to '${name}' (in container '')`);
    for (const field of fields) {
      const type = this.#element(field.value, field.isOptional, scope);
      const wanted = message.field(field.name);
      if (wanted === undefined) this.#fault(field.at, `undefined field '${field.name}'`);
      else if (!this.#known.isAssignable(wanted, type)) {
        const found = shownType(this.#known.apply(type, "dyn"));
        const text = `is '${shownType(wanted)}' but provided type is '${found}'`;
        this.#fault(field.at, `expected type of field '${field.name}' ${text}`);
      }
    }
    return message.type;
  }

  #fold(fold: Fold, scope: Scope): Type {
    const range = this.#known.apply(this.#check(fold.range, scope));
    const accu = this.#check(fold.init, scope);
    const [first, second] = this.#variables(fold, range);
    const outer = new Map(scope).set(fold.accu, accu);
    const inner = new Map(outer).set(fold.first, first);
    if (fold.second !== undefined) inner.set(fold.second, second);
    if (!this.#known.isAssignable(this.#check(fold.condition, inner), BOOL))
      this.#fault(fold.condition.at, mismatch(BOOL, this.#typed(fold.condition)));
    if (!this.#known.isAssignable(this.#check(fold.step, inner), accu))
      this.#fault(fold.step.at, mismatch(this.#known.apply(accu), this.#typed(fold.step)));
    return this.#known.apply(this.#check(fold.result, outer));
  }

  #typed(expr: Expr): Type {
    return this.#known.apply(this.#types.get(expr.id) ?? ERROR);
  }

  #variables(fold: Fold, range: Type): readonly [Type, Type] {
    const [first = DYN, second = DYN] = range.params;
    switch (range.kind) {
      case "list":
        return fold.second === undefined ? [first, DYN] : [INT, first];
      case "map":
        return [first, second];
      case "dyn":
      case "error":
      case "param":
        this.#known.isAssignable(DYN, range);
        return [DYN, DYN];
      default:
        this.#fault(
          fold.range.at,
          `expression of type '${shownType(range)}' cannot be range of a comprehension ` +
            "(must be list, map, or dynamic)",
        );
        return [ERROR, ERROR];
    }
  }
}

export function mismatch(wanted: Type, found: Type): string {
  return `expected type '${shownType(wanted)}' but found '${shownType(found)}'`;
}

function instantiated(type: Type, fresh: ReadonlyMap<string, Type>): Type {
  if (type.kind === "param") return fresh.get(type.name) ?? type;
  if (type.params.length === 0) return type;
  return { ...type, params: type.params.map((one) => instantiated(one, fresh)) };
}
