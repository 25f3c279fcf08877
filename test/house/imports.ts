/**
 * Which file imports which: the import statements of each file, resolved to files of ours, entry
 * points of ours or packages from npm.
 */
import { posix } from "node:path";
import { codeOnly } from "./scan.ts";
import { isCode, lineAt, type SourceFile } from "./tree.ts";

/** One import or re-export. */
export interface Import {
  readonly from: SourceFile;
  readonly line: number;
  /** As written, such as "./wal.ts", "@quorate/raft", "node:fs" or "undici". */
  readonly specifier: string;
  /** True for `import type` and `export type`, which vanish when the code runs. */
  readonly typeOnly: boolean;
  /** The file of ours it names, where the specifier is relative or one of our entry points. */
  readonly target: string | undefined;
}

const namespaceClause = String.raw`\*(?:\s+as\s+[\w$]+)?`;
const namedClause = String.raw`\{[^}]*\}`;
const defaultClause = String.raw`[\w$]+(?:\s*,\s*(?:${namedClause}|${namespaceClause}))?`;
const fromClause = new RegExp(
  String.raw`^(?:import|export)\s+(type\s+)?(?:${namespaceClause}|${namedClause}|${defaultClause})\s+from\s+"([^"\n]*)"`,
  "gm",
);
const bareImport = /^import\s+"([^"\n]*)"/gm;
const dynamicImport = /\bimport\(\s*"([^"\n]*)"/g;
/**
 * `new URL("./worker.ts", import.meta.url)` and `join(import.meta.dirname, "worker.ts")`: files
 * that are started, not imported.
 */
const startedFile = /(?:new URL\(|import\.meta\.dirname,\s*)"([^"\n]*\.(?:ts|js))"/g;

/** The imports of every code file, in file and line order. */
export function importsOf(files: readonly SourceFile[]): Import[] {
  return files.filter(isCode).flatMap(importsOfFile);
}

/** The imports of one file. */
export function importsOfFile(file: SourceFile): Import[] {
  const code = codeOnly(file.text);
  const found: Import[] = [];
  const add = (offset: number, specifier: string, typeOnly: boolean): void => {
    // An import inside a comment or a string is blank in `code`.
    if (/\S/.test(code.slice(offset, offset + 1))) {
      found.push({
        from: file,
        line: lineAt(file.text, offset),
        specifier,
        typeOnly,
        target: targetOf(file.path, specifier),
      });
    }
  };
  for (const match of file.text.matchAll(fromClause))
    add(match.index, match[2], match[1] !== undefined);
  for (const match of file.text.matchAll(bareImport)) add(match.index, match[1], false);
  for (const match of file.text.matchAll(dynamicImport)) add(match.index, match[1], false);
  return found;
}

/** Files that this one starts by path: workers and child processes. */
export function startedFiles(file: SourceFile): string[] {
  return [...file.text.matchAll(startedFile)].map((match) =>
    posix.join(posix.dirname(file.path), match[1]),
  );
}

/**
 * The file behind a relative specifier or one of our entry points; undefined for node: and npm
 * packages.
 */
function targetOf(from: string, specifier: string): string | undefined {
  if (specifier.startsWith(".")) return posix.join(posix.dirname(from), specifier);
  const entryPoint = /^@quorate\/([\w-]+)(?:\/(.+))?$/.exec(specifier);
  if (entryPoint === null) return undefined;
  return `packages/${entryPoint[1]}/${entryPoint[2] === undefined ? "" : `${entryPoint[2]}/`}index.ts`;
}

/**
 * The npm package of a specifier, such as "@grpc/grpc-js" or "undici"; undefined for ours, relative
 * ones and node:.
 */
export function npmPackageOf(specifier: string): string | undefined {
  if (/^(?:\.|node:|@quorate\/)/.test(specifier)) return undefined;
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/** The package that a file belongs to; undefined outside packages/. */
export function packageOf(path: string): string | undefined {
  return /^packages\/([\w-]+)\//.exec(path)?.[1];
}
