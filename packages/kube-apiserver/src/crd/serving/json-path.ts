/**
 * JSON paths of printer columns and selectable fields (client-go: util/jsonpath), without the
 * braces around them. Evaluation visits a bounded number of values.
 *
 *     .spec.replicas  .metadata.labels['a.b']  .spec.ports[*].port  .items[-1]  ..name
 *     .status.conditions[?(@.type=="Ready")].status
 */
import { isObject, type Json } from "@quorate/kube-storage";
import { fieldOf } from "../schema/edit.ts";

type Step =
  | { readonly type: "field"; readonly name: string }
  | { readonly type: "wildcard" | "recursive" }
  | {
      readonly type: "slice";
      readonly from?: number | undefined;
      readonly to?: number | undefined;
      readonly step: number;
    }
  | { readonly type: "filter"; readonly filter: Filter }
  | { readonly type: "union"; readonly steps: readonly Step[] };

/** More values of one path are not visited. */
export const MAX_VISITED_VALUES = 10_000;

/** A path that cannot be read. */
export class JsonPathError extends SyntaxError {}

/** A parsed path. */
export class JsonPath {
  readonly #steps: readonly Step[];

  /** Throws JsonPathError. */
  constructor(text: string) {
    this.#steps = new Parser(text).path();
  }

  /** All values at the path, in the order of the object; none where there is nothing. */
  find(value: Json | undefined): Json[] {
    const budget = { left: MAX_VISITED_VALUES };
    let values: Json[] = value === undefined ? [] : [value];
    for (const step of this.#steps) values = values.flatMap((one) => applied(step, one, budget));
    return values;
  }
}

function applied(step: Step, value: Json, budget: { left: number }): Json[] {
  if (budget.left-- <= 0) return [];
  switch (step.type) {
    case "field": {
      const field = isObject(value) ? fieldOf(value, step.name) : undefined;
      return field === undefined ? [] : [field];
    }
    case "wildcard":
      return childrenOf(value);
    case "recursive":
      return [value, ...childrenOf(value).flatMap((child) => applied(step, child, budget))];
    case "slice":
      return Array.isArray(value) ? sliced(value, step) : [];
    case "filter":
      return childrenOf(value).filter((child) => isKept(step.filter, child));
    default:
      return step.steps.flatMap((one) => applied(one, value, budget));
  }
}

function childrenOf(value: Json): Json[] {
  if (Array.isArray(value)) return [...value];
  return isObject(value) ? Object.values(value).filter((one) => one !== undefined) : [];
}

function sliced(list: readonly Json[], step: Extract<Step, { type: "slice" }>): Json[] {
  const at = (index: number) => (index < 0 ? index + list.length : index);
  const from = Math.max(at(step.from ?? 0), 0);
  const to = Math.min(at(step.to ?? list.length), list.length);
  return list.filter((_, i) => i >= from && i < to && (i - from) % step.step === 0);
}

const NAME = /^(?:[^.[\]\\]|\\.)+/;

class Parser {
  #rest: string;

  constructor(text: string) {
    this.#rest = text;
  }

  path(): Step[] {
    const steps: Step[] = [];
    while (this.#rest !== "") steps.push(...this.#step());
    return steps;
  }

  #step(): Step[] {
    if (this.#rest.startsWith("..")) {
      this.#rest = this.#rest.slice(1);
      return [{ type: "recursive" }];
    }
    if (this.#rest.startsWith("[")) return [this.#bracket()];
    if (this.#rest.startsWith(".") || this.#rest.startsWith("@") || this.#rest.startsWith("$")) {
      this.#rest = this.#rest.slice(1);
      if (this.#rest === "" || /^[.[]/.test(this.#rest)) return [];
    }
    const name = NAME.exec(this.#rest)?.[0];
    if (name === undefined) throw new JsonPathError(`unrecognized character in ${this.#rest}`);
    this.#rest = this.#rest.slice(name.length);
    if (name === "*") return [{ type: "wildcard" }];
    return [{ type: "field", name: name.replace(/\\(.)/g, "$1") }];
  }

  #bracket(): Step {
    const inside = this.#insideBrackets();
    const filter = /^\?\((.*)\)$/s.exec(inside)?.[1];
    if (filter !== undefined) return { type: "filter", filter: parseFilter(filter, parseOperand) };
    const steps = splitUnion(inside).map((part) => element(part.trim()));
    const [first, second] = steps;
    return first !== undefined && second === undefined ? first : { type: "union", steps };
  }

  /** The text up to the bracket that ends this one; quotes and inner brackets are skipped. */
  #insideBrackets(): string {
    let depth = 0;
    let quote = "";
    for (let i = 0; i < this.#rest.length; i++) {
      const char = this.#rest[i];
      if (quote !== "") {
        if (char === "\\") i++;
        else if (char === quote) quote = "";
      } else if (char === "'" || char === '"') quote = char;
      else if (char === "[") depth++;
      else if (char === "]" && --depth === 0) {
        const inside = this.#rest.slice(1, i);
        this.#rest = this.#rest.slice(i + 1);
        return inside;
      }
    }
    throw new JsonPathError("unterminated array");
  }
}

/** One element of a union: an index, a slice, a name in quotes, or "*". */
function element(text: string): Step {
  if (text === "*" || text === "") return { type: "wildcard" };
  const name = unquoted(text);
  if (name !== undefined) return { type: "field", name };
  const range = /^(-?\d+)?(?:(:)(-?\d+)?(?::(\d+))?)?$/.exec(text);
  if (range === null) throw new JsonPathError(`invalid array index ${text}`);
  const [, from, colon, to, step] = range;
  if (colon === undefined) {
    const index = Number(from);
    return { type: "slice", from: index, to: index === -1 ? undefined : index + 1, step: 1 };
  }
  const number = (part: string | undefined) => (part === undefined ? undefined : Number(part));
  if (step === "0") throw new JsonPathError("step must be > 0");
  return { type: "slice", from: number(from), to: number(to), step: number(step) ?? 1 };
}

function splitUnion(text: string): string[] {
  return text.match(/(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,'"])+/g) ?? [""];
}

/** A path in a filter, such as "@.type". */
function parseOperand(text: string): (value: Json) => Json | undefined {
  const path = new JsonPath(text);
  return (value) => path.find(value)[0];
}

/** An operand's value for one candidate. */
type Operand = (value: Json) => Json | undefined;

interface Filter {
  readonly left: Operand;
  /** "" asks only whether the left operand is there. */
  readonly operator: string;
  readonly right: Operand;
}

const COMPARISON = /^((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^'"=!<>])*)(==|!=|<=|>=|<|>)(.*)$/s;

/**
 * The filters of JSON paths: @.type=="Ready", @.port>80, @.name.
 *
 * @param path reads an operand that is a path
 */
function parseFilter(text: string, path: (text: string) => Operand): Filter {
  const [, left = text, operator = "", right] = COMPARISON.exec(text) ?? [];
  return {
    left: operand(left, path),
    operator,
    right: right === undefined ? () => undefined : operand(right, path),
  };
}

/** The text between quotes, without its escapes; undefined if it does not stand between them. */
function unquoted(text: string): string | undefined {
  const quote = text[0];
  if (text.length < 2 || (quote !== "'" && quote !== '"') || !text.endsWith(quote))
    return undefined;
  return text.slice(1, -1).replace(/\\(.)/g, "$1");
}

function operand(text: string, path: (text: string) => Operand): Operand {
  const trimmed = text.trim();
  const value = unquoted(trimmed);
  if (value !== undefined) return () => value;
  if (/^-?\d+(\.\d+)?$/.test(trimmed)) return () => Number(trimmed);
  if (trimmed === "true" || trimmed === "false") return () => trimmed === "true";
  return path(trimmed);
}

function isKept({ left, operator, right }: Filter, value: Json): boolean {
  const a = left(value);
  if (a === undefined) return false;
  if (operator === "") return true;
  const b = right(value);
  if (b === undefined || b === null || a === null || typeof a !== typeof b) return false;
  switch (operator) {
    case "==":
      return a === b;
    case "!=":
      return a !== b;
    case "<":
      return a < b;
    case "<=":
      return a <= b;
    case ">":
      return a > b;
    default:
      return a >= b;
  }
}
