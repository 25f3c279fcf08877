/** The filters of JSON paths: @.type=="Ready", @.port>80, @.name. */
import type { Json } from "@quorate/kube-storage";

/** An operand's value for one candidate. */
type Operand = (value: Json) => Json | undefined;

export interface Filter {
  readonly left: Operand;
  /** "" asks only whether the left operand is there. */
  readonly operator: string;
  readonly right: Operand;
}

const COMPARISON = /^((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^'"=!<>])*)(==|!=|<=|>=|<|>)(.*)$/s;

/** @param path reads an operand that is a path */
export function parseFilter(text: string, path: (text: string) => Operand): Filter {
  const parts = COMPARISON.exec(text);
  if (parts === null) return { left: operand(text, path), operator: "", right: () => undefined };
  return { left: operand(parts[1], path), operator: parts[2], right: operand(parts[3], path) };
}

/** The text between quotes, without its escapes; undefined if it does not stand between them. */
export function unquoted(text: string): string | undefined {
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

export function isKept({ left, operator, right }: Filter, value: Json): boolean {
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
