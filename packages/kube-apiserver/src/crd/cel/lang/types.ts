/**
 * CEL's types, their texts, and which may stand for which (cel-go: common/types, checker/types.go).
 *
 *     int   list(string)   map(string, dyn)   optional_type(int)   selfType.spec   T: a parameter
 */
import { defined } from "@quorate/proto";

export type TypeKind =
  | "dyn"
  | "error"
  | "null"
  | "bool"
  | "int"
  | "uint"
  | "double"
  | "string"
  | "bytes"
  | "timestamp"
  | "duration"
  | "type"
  | "list"
  | "map"
  | "struct"
  | "opaque"
  | "param";

/** The fields of a struct, by the names that expressions use. */
export interface FieldTypes {
  get(field: string): Type | undefined;
  has(field: string): boolean;
}

export interface Type {
  readonly kind: TypeKind;
  /** As errors show it. */
  readonly name: string;
  readonly params: readonly Type[];
  /** Of a struct. */
  readonly fields?: FieldTypes;
  /** The most elements or characters of a value, where the type comes from a schema. */
  readonly maxElements?: number;
}

function simple(kind: TypeKind, name: string = kind): Type {
  return { kind, name, params: [] };
}

export const DYN: Type = simple("dyn");
export const ERROR: Type = simple("error", "!error!");
export const NULL: Type = simple("null");
export const BOOL: Type = simple("bool");
export const INT: Type = simple("int");
export const UINT: Type = simple("uint");
export const DOUBLE: Type = simple("double");
export const STRING: Type = simple("string");
export const BYTES: Type = simple("bytes");
export const TIMESTAMP: Type = simple("timestamp");
export const DURATION: Type = simple("duration");

export function listOf(item: Type): Type {
  return { kind: "list", name: "list", params: [item] };
}

export function mapOf(key: Type, value: Type): Type {
  return { kind: "map", name: "map", params: [key, value] };
}

export function typeOf(type: Type): Type {
  return { kind: "type", name: "type", params: [type] };
}

export function opaque(name: string, ...params: Type[]): Type {
  return { kind: "opaque", name, params };
}

export function optionalOf(type: Type): Type {
  return opaque("optional_type", type);
}

export function struct(name: string, fields: FieldTypes): Type {
  return { kind: "struct", name, params: [], fields };
}

export function typeParam(name: string): Type {
  return simple("param", name);
}

/** The type inside of an optional one; else the type itself. */
export function unwrapped(type: Type): Type {
  return isOptional(type) ? defined(type.params[0], "the type") : type;
}

export function isOptional(type: Type): boolean {
  return type.kind === "opaque" && type.name === "optional_type";
}

export function isDynOrError({ kind }: Type): boolean {
  return kind === "dyn" || kind === "error";
}

/** Names of types in expressions and signatures. */
const NAMED: ReadonlyMap<string, Type> = new Map([
  ["dyn", DYN],
  ["bool", BOOL],
  ["int", INT],
  ["uint", UINT],
  ["double", DOUBLE],
  ["string", STRING],
  ["bytes", BYTES],
  ["null_type", NULL],
  ["google.protobuf.Timestamp", TIMESTAMP],
  ["google.protobuf.Duration", DURATION],
  ["list", listOf(DYN)],
  ["map", mapOf(DYN, DYN)],
  ["type", typeOf(DYN)],
  ["optional_type", optionalOf(DYN)],
]);

/** The type that an expression names; undefined where no type has the name. */
export function namedType(name: string): Type | undefined {
  return NAMED.get(name);
}

/**
 * Reads a type of a signature: "map<string, list<T>>"; single capital letters are parameters.
 * Undefined where `known` and the language have no such type.
 */
export function parseType(text: string, known: ReadonlyMap<string, Type>): Type | undefined {
  const open = text.indexOf("<");
  if (open < 0) {
    if (/^[A-Z]$/.test(text)) return typeParam(text);
    return NAMED.get(text) ?? known.get(text);
  }
  const params = splitTypes(text.slice(open + 1, -1)).map((one) => parseType(one, known));
  if (params.some((one) => one === undefined)) return undefined;
  const [first, second] = params as Type[];
  switch (text.slice(0, open)) {
    case "list":
      return listOf(defined(first, "the item"));
    case "map":
      return mapOf(defined(first, "the key"), defined(second, "the value"));
    case "optional":
      return optionalOf(defined(first, "the value"));
    case "type":
      return typeOf(defined(first, "the type"));
    default:
      return undefined;
  }
}

/** "string, map<K, V>" into its parts. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i <= text.length; i++) {
    const char = text[i];
    if (char === "<") depth++;
    else if (char === ">") depth--;
    else if ((char === "," && depth === 0) || i === text.length) {
      const part = text.slice(start, i).trim();
      if (part !== "") parts.push(part);
      start = i + 1;
    }
  }
  return parts;
}

/** As errors show it: "list(int)". */
export function shownType(type: Type): string {
  const { kind, name, params } = type;
  if (params.length === 0 || (kind === "type" && isDynOrError(params[0] as Type))) return name;
  return `${name}(${params.map(shownType).join(", ")})`;
}

export function sameType(a: Type, b: Type): boolean {
  return (
    a === b ||
    (a.kind === b.kind &&
      a.name === b.name &&
      a.params.length === b.params.length &&
      a.params.every((one, i) => sameType(one, b.params[i] as Type)))
  );
}

/** What parameters stand for. A failed assignment leaves it as it was. */
export class Substitutions {
  readonly #types = new Map<string, Type>();
  /** What the present attempt replaced, so that it can be undone. */
  #replaced: (readonly [name: string, before: Type | undefined])[] = [];
  #count = 0;

  /** A parameter that no other type has. */
  fresh(): Type {
    return typeParam(`_var${this.#count++}`);
  }

  /** The type with what its parameters stand for. @param open what becomes of free parameters */
  apply(type: Type, open: "param" | "dyn" = "param"): Type {
    if (type.kind === "param") {
      const known = this.#types.get(type.name);
      if (known !== undefined) return this.apply(known, open);
      return open === "dyn" ? DYN : type;
    }
    if (type.params.length === 0) return type;
    return { ...type, params: type.params.map((one) => this.apply(one, open)) };
  }

  /** Whether values of `b` may stand where `a` is, or the other way round; remembers why. */
  isAssignable(a: Type, b: Type): boolean {
    return this.#attempt(() => this.#assign(a, b));
  }

  areAssignable(all: readonly Type[], others: readonly Type[]): boolean {
    return (
      all.length === others.length &&
      this.#attempt(() => all.every((one, i) => this.#assign(one, others[i] as Type)))
    );
  }

  #attempt(work: () => boolean): boolean {
    this.#replaced = [];
    if (work()) return true;
    for (const [name, before] of this.#replaced.reverse()) {
      if (before === undefined) this.#types.delete(name);
      else this.#types.set(name, before);
    }
    return false;
  }

  #set(name: string, type: Type): void {
    this.#replaced.push([name, this.#types.get(name)]);
    this.#types.set(name, type);
  }

  #assign(a: Type, b: Type): boolean {
    if (b.kind === "param") {
      const outcome = this.#substitute(a, b);
      if (outcome !== "free") return outcome === "valid";
    }
    if (a.kind === "param") return this.#substitute(b, a) === "valid";
    if (isDynOrError(a) || isDynOrError(b)) return true;
    if (a.kind === "type" && b.kind === "type") return true;
    if (a.kind === "null") return isNullable(b);
    if (b.kind === "null") return isNullable(a);
    return (
      a.kind === b.kind &&
      a.name === b.name &&
      a.params.length === b.params.length &&
      a.params.every((one, i) => this.#assign(one, b.params[i] as Type))
    );
  }

  /** Lets a parameter stand for a type. "free": it stands for nothing, and cannot for this. */
  #substitute(type: Type, param: Type): "valid" | "invalid" | "free" {
    if (sameType(type, param)) return "valid";
    const known = this.#types.get(param.name);
    if (known === undefined) {
      if (this.#refersTo(type, param)) return "free";
      this.#set(param.name, type);
      return "valid";
    }
    if (sameType(type, known)) return "valid";
    if (!this.#assign(type, known)) return "invalid";
    const general = this.mostGeneral(type, known);
    if (!this.#refersTo(general, param)) this.#set(param.name, general);
    return "valid";
  }

  mostGeneral(a: Type, b: Type): Type {
    return this.#isMoreGeneral(a, b) ? a : b;
  }

  #isMoreGeneral(a: Type, b: Type): boolean {
    if (isDynOrError(a)) return true;
    if (a.kind === "param") return b.kind !== "dyn";
    if (b.kind === "null" && isNullable(a)) return true;
    return (
      a.kind === b.kind &&
      a.name === b.name &&
      a.params.every((one, i) => this.#isMoreGeneral(one, b.params[i] as Type))
    );
  }

  #refersTo(type: Type, param: Type): boolean {
    if (type.kind === "param") {
      if (type.name === param.name) return true;
      const known = this.#types.get(type.name);
      return known !== undefined && this.#refersTo(known, param);
    }
    return type.params.some((one) => this.#refersTo(one, param));
  }
}

function isNullable({ kind }: Type): boolean {
  return ["null", "dyn", "error", "struct", "opaque", "timestamp", "duration"].includes(kind);
}
