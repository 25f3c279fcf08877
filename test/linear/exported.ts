/**
 * The exported functions of pure code that take texts and nothing else, found in the sources by
 * their signatures: they are called with every text without being listed, so a new one is covered
 * when it is written.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT: string = join(import.meta.dirname, "../..");

export interface Exported {
  /** From the root of the repository. */
  readonly file: string;
  readonly name: string;
  /** What each required parameter takes. */
  readonly parameters: readonly ("text" | "bytes")[];
}

const SIGNATURE = /^export (?:async )?function (?<name>\w+)(?:<[^>(]*>)?\(/gm;
const TEXT = /^(?:string|string \| undefined|string \| null|unknown)$/;
const BYTES = /^(?:Uint8Array|Uint8Array \| undefined)$/;

/** Files below a folder, without tests and generated code; paths from the root. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !/(?:^|\/)(?:gen|test|testing|support)\//.test(path))
    .map((path) => `${folder}/${path}`)
    .sort();
}

/** Every exported function of a file whose required parameters are texts or bytes. */
export function exportedOf(file: string): Exported[] {
  const source = readFileSync(join(ROOT, file), "utf8");
  const found: Exported[] = [];
  for (const match of source.matchAll(SIGNATURE)) {
    const parameters: ("text" | "bytes")[] = [];
    let isTaken = true;
    for (const one of parametersAt(source, match.index + match[0].length)) {
      // Those with a default, or optional ones, are left out of the call.
      const [, type] = /^\w+: (.+)$/s.exec(one.trim()) ?? [];
      if (type === undefined) {
        if (!/^\w+(?:\?:| = |: [^=]+ = )/.test(one.trim())) isTaken = false;
        continue;
      }
      if (/ = /.test(type)) continue;
      if (TEXT.test(type)) parameters.push("text");
      else if (BYTES.test(type)) parameters.push("bytes");
      else isTaken = false;
    }
    if (isTaken && parameters.length > 0)
      found.push({ file, name: match.groups!["name"], parameters });
  }
  return found;
}

/** The parameters from behind the parenthesis on. */
function parametersAt(source: string, start: number): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = start;
  for (let at = start; at < source.length; at++) {
    const char = source[at];
    if ("([{<".includes(char)) depth++;
    else if (char === ")" && depth === 0) {
      parts.push(source.slice(from, at));
      break;
    } else if (")]}>".includes(char)) depth--;
    else if (char === "," && depth === 0) {
      parts.push(source.slice(from, at));
      from = at + 1;
    }
  }
  return parts.filter((part) => part.trim() !== "");
}
