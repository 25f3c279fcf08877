/** Faults in expressions, as cel-go shows them. */
import { defined } from "@quorate/proto";
import type { CelFault } from "./library.ts";

/**
 * One fault with the line that has it and a mark under its place.
 * @param functions the names of all functions
 */
export function shownFault(
  expression: string,
  fault: CelFault,
  functions: ReadonlySet<string>,
): string {
  const offset = Math.min(placeOf(expression, fault), expression.length);
  const before = expression.slice(0, offset);
  const line = before.split("\n").length;
  const column = offset - (before.lastIndexOf("\n") + 1);
  const text = expression.split("\n")[line - 1] ?? "";
  const mark = `${".".repeat(column)}^`;
  return `ERROR: <input>:${line}:${column + 1}: ${reasonOf(fault, functions)}\n | ${text}\n | ${mark}`;
}

/** cel-go marks operators, the dots before fields, and the brackets of calls. */
function placeOf(expression: string, { code, range, node, summary = "" }: CelFault): number {
  const start = range?.start ?? 0;
  if (code === "no_such_key") return Math.max(start - 1, 0);
  if (code === "no_such_overload") {
    const left = Array.isArray(node?.args) ? (node.args[0] as { end?: number }).end : undefined;
    return left === undefined
      ? start
      : left + defined(/^[\s)]*/.exec(expression.slice(left)), "a match")[0].length;
  }
  if (code !== "no_matching_overload") return start;
  const { name } = callIn(summary);
  const at = expression.indexOf(`${name}(`, start);
  return at < 0 ? start : at + name.length;
}

/** "found no matching overload for 'string.frob(int)'": its parts. */
function callIn(summary: string) {
  const call = summary.slice(summary.indexOf("'") + 1, summary.lastIndexOf(")'"));
  const [callee] = call.split("(", 1);
  const dot = callee.lastIndexOf(".");
  return {
    receiver: dot < 0 ? undefined : callee.slice(0, dot),
    name: callee.slice(dot + 1),
    args: call.slice(callee.length + 1),
  };
}

function reasonOf(
  { code = "", summary, message }: CelFault,
  functions: ReadonlySet<string>,
): string {
  const text = summary ?? message;
  const rest = text.slice(text.indexOf(":") + 1).trim();
  switch (code) {
    case "unknown_variable":
      return `undeclared reference to '${rest}' (in container '')`;
    case "no_such_key":
      return `undefined field '${rest}'`;
    case "no_such_overload":
      return overloadText(rest) ?? text;
    case "no_matching_overload":
      return callText(text, functions);
    default:
      return code === "" || code === "unexpected_token" ? `Syntax error: ${text}` : text;
  }
}

function callText(text: string, functions: ReadonlySet<string>): string {
  const { receiver, name, args } = callIn(text);
  if (!functions.has(name)) return `undeclared reference to '${name}' (in container '')`;
  const on = receiver === undefined ? "" : `${receiver}.`;
  return `found no matching overload for '${name}' applied to '${on}(${args})'`;
}

const OPERATORS: ReadonlySet<string> = new Set("== != <= >= < > + - * / % in".split(" "));

/** "int == string": found no matching overload for '_==_' applied to '(int, string)'. */
function overloadText(operands: string): string | undefined {
  const words = operands.split(" ");
  const at = words.slice(0, -1).findLastIndex((word) => OPERATORS.has(word));
  if (at > 0) {
    const operator = words[at];
    const left = words.slice(0, at).join(" ");
    const right = words.slice(at + 1).join(" ");
    const name = operator === "in" ? "@in" : `_${operator}_`;
    return `found no matching overload for '${name}' applied to '(${left}, ${right})'`;
  }
  const unary = /^([!-])(.+)$/.exec(operands);
  if (unary === null) return undefined;
  const name = unary[1] === "!" ? "!_" : "-_";
  return `found no matching overload for '${name}' applied to '(${unary[2]})'`;
}

const NO_OVERLOAD: ReadonlySet<string> = new Set([
  "no_such_overload",
  "no_matching_overload",
  "field_type_mismatch",
  "list_item_type_mismatch",
  "variable_type_mismatch",
]);

/** Why an evaluation failed, as Kubernetes shows it. @param rule the rule's text */
export function shownFailure({ code = "", summary, message }: CelFault, rule: string): string {
  const text = summary ?? message;
  if (NO_OVERLOAD.has(code) || text === "no such overload") {
    const what = "call arguments did not match a supported operator, function or macro signature";
    return `'no such overload': ${what} for rule: ${rule}`;
  }
  return `${failureText(code, text)} evaluating rule: ${rule}`;
}

function failureText(code: string, text: string): string {
  if (code === "index_out_of_bounds") {
    return `index out of bounds: ${/index (-?\d+)/.exec(text)?.[1] ?? ""}`;
  }
  return text.startsWith("No such key") ? `no${text.slice(2)}` : text;
}
