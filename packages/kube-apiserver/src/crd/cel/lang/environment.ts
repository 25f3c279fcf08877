/**
 * What expressions may use: variables, types, functions with their overloads. An environment is
 * declared in texts:
 *
 *     string.find(string): string         a method; its first argument is the target
 *     sets.contains(list<T>, list<T>): bool   a function with a name of two parts
 *     int + int: int                      see standard.ts for operators: "_+_(int, int): int"
 */
import { parseType, splitTypes, type Type, typeParam } from "./types.ts";

/** One signature of a function, and what it does. */
export interface Overload {
  /** "string.find(string)": unique among all. */
  readonly id: string;
  readonly name: string;
  readonly isMember: boolean;
  /** The target first. */
  readonly params: readonly Type[];
  readonly result: Type;
  readonly hasTypeParams: boolean;
  readonly call: (...args: never[]) => unknown;
}

/** A type whose values expressions write: "Object.spec{replicas: 1}". */
export interface MessageKind {
  readonly type: Type;
  /** The type of a field; undefined where there is none. */
  field(name: string): Type | undefined;
  /** @param fields that the expression gives; throws EvaluationError for wrong ones */
  make(fields: ReadonlyMap<string, unknown>): unknown;
}

export class Environment {
  readonly #parent: Environment | undefined;
  readonly #types = new Map<string, Type>();
  readonly #variables = new Map<string, Type>();
  readonly #functions = new Map<string, Overload[]>();
  #messages: ((name: string) => MessageKind | undefined) | undefined;

  constructor(parent?: Environment) {
    this.#parent = parent;
    for (const [name, type] of parent?.types ?? []) this.#types.set(name, type);
  }

  /** An environment with all of this one's, to which more is declared. */
  extend(): Environment {
    return new Environment(this);
  }

  get types(): ReadonlyMap<string, Type> {
    return this.#types;
  }

  /** Adds a type under its name, for signatures and variables. */
  type(type: Type): this {
    this.#types.set(type.name, type);
    return this;
  }

  variable(name: string, type: Type): this {
    this.#variables.set(name, type);
    return this;
  }

  variableNamed(name: string): Type | undefined {
    return this.#variables.get(name) ?? this.#parent?.variableNamed(name);
  }

  /** Adds types of messages. @param resolve by their names */
  messages(resolve: (name: string) => MessageKind | undefined): this {
    this.#messages = resolve;
    return this;
  }

  messageNamed(name: string): MessageKind | undefined {
    return this.#messages?.(name) ?? this.#parent?.messageNamed(name);
  }

  functionNamed(name: string): readonly Overload[] | undefined {
    return this.#functions.get(name) ?? this.#parent?.functionNamed(name);
  }

  /** Declares an overload. Throws RangeError for a signature with an unknown type. */
  // biome-ignore lint/suspicious/noExplicitAny: functions have the types of their signatures
  function(signature: string, call: (...args: any[]) => unknown): this {
    const overload = this.#overload(signature, call);
    const present = this.functionNamed(overload.name) ?? [];
    this.#functions.set(overload.name, [...present, overload]);
    return this;
  }

  #overload(signature: string, call: Overload["call"]): Overload {
    const open = signature.indexOf("(");
    const close = signature.lastIndexOf("): ");
    if (open < 0 || close < open) throw new RangeError(`not a signature: ${signature}`);
    const callee = signature.slice(0, open);
    const dot = callee.lastIndexOf(".");
    const target = dot < 0 ? undefined : parseType(callee.slice(0, dot), this.#types);
    const typed = (text: string): Type => {
      const type = parseType(text, this.#types);
      if (type === undefined) throw new RangeError(`no type ${text} in ${signature}`);
      return type;
    };
    const params = splitTypes(signature.slice(open + 1, close)).map(typed);
    return {
      id: signature.slice(0, close + 1),
      name: target === undefined ? callee : callee.slice(dot + 1),
      isMember: target !== undefined,
      params: target === undefined ? params : [target, ...params],
      result: typed(signature.slice(close + 3)),
      hasTypeParams: /\b[A-Z]\b/.test(signature),
      call,
    };
  }
}

/** The parameters of a signature, such as T. */
export function paramsIn(overload: Overload): Type[] {
  const names = new Set<string>();
  const visit = ({ kind, name, params }: Type): void => {
    if (kind === "param") names.add(name);
    for (const one of params) visit(one);
  };
  for (const one of [...overload.params, overload.result]) visit(one);
  return [...names].map(typeParam);
}
