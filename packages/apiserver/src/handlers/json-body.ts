/**
 * Reads JSON of clients: bounded depth, and duplicate fields found (apimachinery: util/json,
 * sigs.k8s.io/json).
 *
 * JSON.parse accepts duplicate fields silently. A scan counts the members in the text; only where
 * the parsed value has fewer does a second scan name the duplicates.
 */
import { toUtf8 } from "@quorate/proto";

/** Nesting of a JSON value; deeper ones are refused. Kubernetes' limit is 10,000. */
export const MAX_JSON_DEPTH = 500;
/** Duplicate fields that are reported. */
const MAX_DUPLICATES = 100;

export interface ParsedJson {
  readonly value: unknown;
  /** Such as 'duplicate field "spec.size"'. */
  readonly duplicates: readonly string[];
}

/** Throws SyntaxError. */
export function parseJson(bytes: Uint8Array): ParsedJson {
  const text = toUtf8(bytes);
  const members = membersIn(text);
  const value: unknown = JSON.parse(text);
  const duplicates = members === membersOf(value) ? [] : duplicatesIn(text);
  return { value, duplicates };
}

/** How many members the objects of the text have. Throws SyntaxError when it is too deep. */
function membersIn(text: string): number {
  let members = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = endOfString(text, i);
    else if (code === 0x3a) members++;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > MAX_JSON_DEPTH) throw new SyntaxError("exceeded max depth");
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return members;
}

/** The index of the quote that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at === -1) return text.length;
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return at;
  }
}

function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += membersOf(item);
    return members;
  }
  for (const field in value) members += 1 + membersOf((value as Record<string, unknown>)[field]);
  return members;
}

interface Level {
  readonly fields: Set<string> | undefined;
  /** Of this value in its parent. */
  readonly path: string;
  index: number;
  field: string;
}

/** @param text valid JSON */
function duplicatesIn(text: string): string[] {
  const found: string[] = [];
  const levels: Level[] = [];
  let isName = false;
  for (let i = 0; i < text.length && found.length < MAX_DUPLICATES; i++) {
    const char = text[i];
    const level = levels.at(-1);
    if (char === '"') {
      const end = endOfString(text, i);
      if (isName && level?.fields !== undefined) {
        const name = JSON.parse(text.slice(i, end + 1)) as string;
        const path = level.path === "" ? name : `${level.path}.${name}`;
        if (level.fields.has(name)) found.push(`duplicate field ${JSON.stringify(path)}`);
        level.fields.add(name);
        level.field = name;
      }
      i = end;
    } else if (char === "{" || char === "[") {
      const fields = char === "{" ? new Set<string>() : undefined;
      levels.push({ fields, path: pathBelow(level), index: 0, field: "" });
      isName = char === "{";
    } else if (char === "}" || char === "]") {
      levels.pop();
      isName = false;
    } else if (char === ":") isName = false;
    else if (char === "," && level !== undefined) {
      level.index++;
      isName = level.fields !== undefined;
    }
  }
  return found;
}

function pathBelow(level: Level | undefined): string {
  if (level === undefined) return "";
  if (level.fields === undefined) return `${level.path}[${level.index}]`;
  return level.path === "" ? level.field : `${level.path}.${level.field}`;
}
