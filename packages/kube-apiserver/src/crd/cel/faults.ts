/** Faults in expressions, as cel-go shows them. */
import type { Fault } from "./lang/check.ts";

/** Each fault with the line that has it and a mark under its place. */
export function shownFaults(expression: string, faults: readonly Fault[]): string {
  return faults.map((fault) => shownFault(expression, fault)).join("\n");
}

function shownFault(expression: string, { at, message }: Fault): string {
  const before = expression.slice(0, at);
  const line = before.split("\n").length;
  const column = at - (before.lastIndexOf("\n") + 1);
  const text = (expression.split("\n")[line - 1] ?? "").replaceAll("\t", " ");
  const mark = `${".".repeat(column)}^`;
  return `ERROR: <input>:${line}:${column + 1}: ${message}\n | ${text}\n | ${mark}`;
}

/** Why an evaluation failed, as Kubernetes shows it. @param rule the rule's text */
export function shownFailure(message: string, rule: string): string {
  if (message.startsWith("no such overload")) {
    const what = "call arguments did not match a supported operator, function or macro signature";
    return `'${message}': ${what} for rule: ${rule}`;
  }
  return `${message} evaluating rule: ${rule}`;
}
