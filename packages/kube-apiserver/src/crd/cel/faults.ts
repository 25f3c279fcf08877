/** Faults in expressions, as cel-go shows them. */
import type { Fault } from "./lang/check.ts";

/** An expression that does not compile. Its message is what Kubernetes shows. */
export class CompileError extends SyntaxError {}

/** More faults are counted only, as in cel-go: each shows its whole line. */
const MAX_SHOWN = 100;
/** Characters of all shown faults; each one shows its line. */
const MAX_CHARS = 64 * 1024;

/** Each fault with the line that has it and a mark under its place. */
export function shownFaults(expression: string, faults: readonly Fault[]): string {
  const lines = expression.split("\n");
  const shown: string[] = [];
  let chars = 0;
  for (const fault of faults.slice(0, MAX_SHOWN)) {
    const text = shownFault(expression, lines, fault);
    chars += text.length;
    if (chars > MAX_CHARS && shown.length > 0) break;
    shown.push(text);
  }
  const left = faults.length - shown.length;
  if (left > 0) shown.push(`${left} more errors were truncated`);
  return shown.join("\n");
}

function shownFault(expression: string, lines: readonly string[], { at, message }: Fault): string {
  const before = expression.slice(0, at);
  const line = before.split("\n").length;
  const column = at - (before.lastIndexOf("\n") + 1);
  const text = (lines[line - 1] ?? "").replaceAll("\t", " ");
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
