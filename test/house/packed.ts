/**
 * Types that check: literals are written out where they stand, and a value is not declared to be of
 * a type that it has not.
 */
import { codeOnly } from "./scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

const CLOSING: Readonly<Record<string, string>> = { "[": "]", "{": "}", "(": ")" };

/**
 * Literals that stand behind `...` in a literal or a call, as in `{ ...{ a, b } }`: TypeScript does
 * not report a misspelt property of them. A literal of which a method is called, and a rest
 * parameter, are none.
 */
export function checkPackedLiterals(files: readonly SourceFile[]): Finding[] {
  return files.filter(isCode).flatMap((file) => {
    const code = codeOnly(file.text);
    return [...code.matchAll(/\.\.\.\s*(?=[[{(])/g)].flatMap(({ 0: dots, index }) => {
      const start = index + dots.length;
      const end = closingOf(code, start) + 1;
      if (!isLiteral(code.slice(start, end))) return [];
      const behind = code.slice(end).trimStart();
      if (!/^(?:[,\]})]|as const\b)/.test(behind)) return [];
      const where = `${file.path}:${lineAt(file.text, index)}`;
      return [{ where, what: "a literal spread into another: write its parts there" }];
    });
  });
}

/** True for a literal, also one in round brackets. */
function isLiteral(code: string): boolean {
  if (!code.startsWith("(")) return /^[[{]/.test(code) && closingOf(code, 0) === code.length - 1;
  const inside = code.slice(1, -1).trim();
  return isLiteral(
    inside.endsWith("as const") ? inside.slice(0, -"as const".length).trim() : inside,
  );
}

/** The place of the bracket that closes the one at `start`. */
function closingOf(code: string, start: number): number {
  const open: string[] = [];
  for (let at = start; at < code.length; at++) {
    const char = code[at];
    const closing = CLOSING[char];
    if (closing !== undefined) open.push(closing);
    else if (char === open.at(-1)) {
      open.pop();
      if (open.length === 0) return at;
    }
  }
  return code.length;
}

/** Files that may declare a value to be of any type, and why. */
const CAST: Readonly<Record<string, string>> = {
  "packages/host/node/keyspace.ts": "classic-level's types lack the methods that it has",
  "packages/metrics/node/prometheus.ts": "prom-client reads less of a metric than its types say",
  "packages/rpc/node/websocket/index.ts": "ws exports its Receiver without a type",
  "scripts/dev/command-line.ts": "yargs infers the options of a table less exactly",
  "scripts/proto/descriptors.ts": "protobufjs's extension for descriptors has no types",
};

/** Uses of `as unknown as` in programs and scripts, outside of `CAST`. Tests may build fakes. */
export function checkCasts(files: readonly SourceFile[]): Finding[] {
  return files.filter(isCode).flatMap((file) => {
    if (!/^(?:packages\/[\w-]+\/(?:src|node|bin)|scripts)\//.test(file.path)) return [];
    if (CAST[file.path] !== undefined) return [];
    return [...codeOnly(file.text).matchAll(/\bas unknown as\b/g)].map(({ index }) => ({
      where: `${file.path}:${lineAt(file.text, index)}`,
      what: "as unknown as: give the value the type that it has, or check it",
    }));
  });
}
