/**
 * Changes that a machine makes to a source file: the condition of each `if` and `while`
 * negated, each comparison, logical and arithmetic operator exchanged for its
 * neighbour, each statement of one line that does something left out. They are found in the text,
 * as the formatter lays it out, without types, comments and literals.
 */
import { stripTypeScriptTypes } from "node:module";
import { edited, type SourceEdit } from "@quorate/host/testing";
import { codeOnly } from "../house/scan.ts";

/** One change of a file's text. */
export interface MachineChange extends Omit<SourceEdit, "path"> {
  readonly line: number;
  /** What was changed, on one line; it counts the same changes of a line. */
  readonly what: string;
}

/** Binary operators have a space on each side. */
const OPERATOR = /(?<= )(?:<=?|>=?|===|!==|&&|\|\||[-+*/]=?)(?= )/g;
const NEIGHBOURS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "+=": "-=",
  "-=": "+=",
};
const CONDITION = /\b(?:if|while) \(/g;
/** A call, an assignment or a step of a counter; not the field of a class, which stands in line. */
const OTHER_STATEMENTS =
  "return|throw|const|let|export|import|type|readonly|static|private|super|yield|break|continue";
const STATEMENT = new RegExp(
  String.raw`^ {2,}(?! |(?:${OTHER_STATEMENTS})\b)[\w#.!?()[\], ]+?` +
    String.raw`(?:\(.*\)|(?: [-+]?=|\?\?=) [^>].*|\+\+|--);$`,
  "gm",
);
const FIELD = /^ {2}(?:(?:readonly|static) )*#?\w+(?:[?!]?: .*)? = /;
/** What is written to the log is for people; no test reads it all. */
const LOGGED = /\blog(?:ger)?\b[\w.?]*\.(?:debug|info|warn|error)\??\.?\(/i;

/** All changes of a file's text, in the order of their places. */
export function changesOf(source: string): MachineChange[] {
  const code = codeOnly(stripTypeScriptTypes(source));
  const changes: MachineChange[] = [];
  const same = new Map<string, number>();
  const add = (start: number, end: number, text: string) => {
    const line = source.slice(0, start).split("\n").length;
    const around = source.split("\n")[line - 1].trim();
    const shown = `${source.slice(start, end).trim()} => ${text} in ${around}`.replace(/\s+/g, " ");
    const count = (same.get(`${line} ${shown}`) ?? 0) + 1;
    same.set(`${line} ${shown}`, count);
    const what = count === 1 ? shown : `${shown} (${count})`;
    changes.push({ line, what, start, end, text });
  };
  for (const { 0: operator, index } of code.matchAll(OPERATOR))
    add(index, index + operator.length, NEIGHBOURS[operator] ?? operator);
  for (const { 0: head, index } of code.matchAll(CONDITION)) {
    const start = index + head.length;
    const end = closing(code, start);
    add(start, end, `!(${source.slice(start, end)})`);
  }
  for (const { 0: statement, index } of code.matchAll(STATEMENT)) {
    const text = source.slice(index, index + statement.length);
    if (FIELD.test(text) || LOGGED.test(text)) continue;
    const start = index + statement.search(/\S/);
    add(start, index + statement.length, ";");
  }
  return changes
    .filter((one) => one.text !== source.slice(one.start, one.end) && reads(edited(source, one)))
    .sort((a, b) => a.start - b.start);
}

function reads(source: string): boolean {
  try {
    stripTypeScriptTypes(source);
    return true;
  } catch {
    return false;
  }
}

/** Where the parenthesis closes that opened just before `start`. */
function closing(code: string, start: number): number {
  let depth = 1;
  let at = start;
  for (; at < code.length; at++) {
    if (code[at] === "(") depth++;
    else if (code[at] === ")" && --depth === 0) break;
  }
  return at;
}
