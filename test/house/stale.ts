/**
 * Names in comments and pages of what is not there.
 *
 * A path is a word that ends in .ts or .sh, or begins with docs/ and ends in .md: a file's path
 * ends with it. An identifier is a word in backquotes with a capital letter after a small one, or
 * any word with two parts that begin with a capital letter each: it stands in code or in a literal.
 * A comment that names its source in another project may name what is in that one.
 */
import type { Finding, SourceFile } from "./tree.ts";

/** Comments that begin a line. */
const COMMENT = /^[ \t]*\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm;
const FENCE = /^```.*?^```$/gms;
/** A path; the rest of a URL, a pattern or a path outside the repository is none. */
const PATH =
  /(?<![\w/.:$*{}<>~@\\-])(?:(?:[\w@-][\w.-]*\/)*[\w-][\w.-]*\.(?:ts|sh)|docs\/[\w./-]+\.md)\b(?![\w/*{-])/g;
/** Generated files, which rules do not read, and names that stand for any: NAME.ts, a.ts. */
const NO_FILE = /(?:^|\/)(?:gen\/|[A-Z]+\.|[a-z]\.)/;
const QUOTED = /`([A-Za-z_$][\w$]*)(?:\(\))?`/g;
const PARTS = /(?<![\w.$/:#@`"'-])[A-Z][a-z\d]+(?:[A-Z][a-z\d]+)+(?![\w`"'-]|\.\w)/g;
const SOURCE =
  /\b[\w-]+\.(?:go|proto)\b|\betcd|\bKubernetes|\bkube|\bapi(?:server|machinery)|\bgo-|\bgrpc|\bgRPC|\bRFC|\bGo's|\bOpenTelemetry|\bCEL/;
/** Names of things that are not identifiers. */
const PROPER = new Set(["DevTools", "PascalCase", "SplitMix64", "VitePress"]);

/** All of the rule's findings. */
export function checkStaleNames(files: readonly SourceFile[]): Finding[] {
  const ends = new Set(files.flatMap(({ path }) => endsOf(path)));
  const words = new Set(files.flatMap(wordsOf));
  return files.flatMap((file) =>
    proseOf(file).flatMap(({ line, text }) => {
      const at = (offset: number): string =>
        `${file.path}:${line + text.slice(0, offset).split("\n").length - 1}`;
      const paths = [...text.matchAll(PATH)]
        .filter(({ 0: path }) => !ends.has(path) && !NO_FILE.test(path))
        .map(({ 0: path, index }) => ({ where: at(index), what: `there is no file ${path}` }));
      if (!file.path.endsWith(".ts") || SOURCE.test(text)) return paths;
      const names = [...text.matchAll(QUOTED), ...text.matchAll(PARTS)]
        .map(({ 0: all, 1: quoted, index }) => ({ name: quoted ?? all, index }))
        .filter(({ name }) => /[a-z\d][A-Z]/.test(name) && !PROPER.has(name))
        .filter(({ name }) => !words.has(name) && !words.has(name.replace(/s$/, "")))
        .map(({ name, index }) => ({ where: at(index), what: `nothing is called ${name}` }));
      return [...paths, ...names];
    }),
  );
}

/** A path, and what is left of it without its first directories. */
function endsOf(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, at) => parts.slice(at).join("/"));
}

function wordsOf({ path, text }: SourceFile): string[] {
  if (path.endsWith(".md")) return [];
  const rest = path.endsWith(".ts") ? text.replace(COMMENT, "") : text;
  return [...new Set(rest.match(/[A-Za-z_$][\w$]*/g))];
}

/** The comments of a file, or a page without its blocks of code, each with its first line. */
function proseOf({ path, text }: SourceFile): { line: number; text: string }[] {
  if (path.endsWith(".md"))
    return [{ line: 1, text: text.replace(FENCE, (block) => block.replace(/[^\n]/g, "")) }];
  if (!path.endsWith(".ts")) return [];
  return [...text.matchAll(COMMENT)].map(({ 0: comment, index }) => ({
    line: text.slice(0, index).split("\n").length,
    text: comment,
  }));
}
