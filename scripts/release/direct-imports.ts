/**
 * Two changes of imports, with which a program starts in less time:
 *
 *     import { defined } from "@quorate/proto";    import { defined } from ".../src/invariant.ts";
 *     import { spawn } from "node:child_process";  const { spawn } = process.getBuiltinModule(...);
 *
 * esbuild splits a bundle by what files import, whatever they use of it: by way of a package's
 * index each program would read, and evaluate, all that any program needs of the package. This is
 * for packages whose package.json says that their files have no side effects.
 *
 * Node makes a module of each of its own that is imported, with all that it exports. That of
 * node:fs loads streams and promises, which nobody may want.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";
import { root } from "./programs.ts";

/** A statement `import CLAUSE from "FROM";`, or the same with `export`. */
interface Statement {
  readonly kind: string;
  readonly clause: string;
  readonly from: string;
  readonly start: number;
  readonly end: number;
}

const OWN = "@quorate/";
const KEYWORDS = ["import ", "export "];

function statementsOf(source: string): Statement[] {
  const found: Statement[] = [];
  let next = 0;
  for (let start = 0; start < source.length; start = next) {
    next = source.indexOf("\n", start) + 1 || source.length;
    const keyword = KEYWORDS.find((word) => source.startsWith(word, start));
    const end = keyword === undefined ? -1 : source.indexOf(";", start) + 1;
    if (keyword === undefined || end === 0) continue;
    next = Math.max(next, end);
    const text = source.slice(start + keyword.length, end);
    const [clause = "", from, more] = text.split(' from "');
    if (from === undefined || more !== undefined || !from.endsWith('";')) continue;
    found.push({ kind: keyword.trim(), clause, from: from.slice(0, -2), start, end });
  }
  return found;
}

/** The name of `* as NAME`; undefined for other clauses. */
const spaceOf = (clause: string): string | undefined =>
  clause.startsWith("* as ") ? clause.slice("* as ".length) : undefined;

/** Where a name of an index is declared, and the clause that imports it from there. */
interface Declared {
  readonly file: string;
  readonly clause: (local: string) => string;
}

/** The names in braces, without types: what stands outside, and inside. */
function namesIn(braces: string): { readonly name: string; readonly local: string }[] {
  return braces
    .slice(1, -1)
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "" && !part.startsWith("type "))
    .map((part) => {
      const [name = "", local = name] = part.split(" as ");
      return { name, local };
    });
}

/** The values that an index exports from other files. */
async function declaredIn(index: string): Promise<ReadonlyMap<string, Declared>> {
  const declared = new Map<string, Declared>();
  for (const { kind, clause, from } of statementsOf(readFileSync(index, "utf8"))) {
    if (kind !== "export" || !(clause.startsWith("{") || clause.startsWith("*"))) continue;
    if (!from.startsWith(".")) {
      const other = await declaredBy(from.replace(OWN, ""));
      for (const { name, local } of clause.startsWith("{") ? namesIn(clause) : []) {
        const found = other?.get(name);
        if (found !== undefined) declared.set(local, found);
      }
      continue;
    }
    const file = join(dirname(index), from);
    const named = (name: string): Declared => ({
      file,
      clause: (local) => `{ ${name} as ${local} }`,
    });
    const space = spaceOf(clause);
    if (space !== undefined) declared.set(space, { file, clause: (local) => `* as ${local}` });
    else if (clause === "*")
      for (const name of Object.keys(await import(pathToFileURL(file).href)))
        declared.set(name, named(name));
    else for (const { name, local } of namesIn(clause)) declared.set(local, named(name));
  }
  return declared;
}

/** The index behind "PACKAGE" or "PACKAGE/ENTRY"; undefined where files may have side effects. */
function indexOf(from: string): string | undefined {
  const [name = "", ...entry] = from.split("/");
  const directory = join(root, "packages", name);
  const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as {
    readonly sideEffects?: boolean;
    readonly exports: Readonly<Record<string, string>>;
  };
  const index = manifest.exports[[".", ...entry].join("/")];
  return manifest.sideEffects === false && index !== undefined ? join(directory, index) : undefined;
}

const known = new Map<string, Promise<ReadonlyMap<string, Declared>>>();

/** The same for an index by its address; undefined where files may have side effects. */
async function declaredBy(from: string): Promise<ReadonlyMap<string, Declared> | undefined> {
  const index = indexOf(from);
  if (index === undefined) return undefined;
  const found = known.get(index) ?? declaredIn(index);
  known.set(index, found);
  return found;
}

/** A source whose imports of packages' indexes are direct ones. */
async function direct(source: string): Promise<string> {
  let made = "";
  let end = 0;
  for (const { kind, clause: names, from, start, end: after } of statementsOf(source)) {
    if (!names.startsWith("{") || !from.startsWith(OWN)) continue;
    const declared = await declaredBy(from.slice(OWN.length));
    if (declared === undefined) continue;
    const lines = namesIn(names).map(({ name, local }) => {
      const { file, clause } = declared.get(name) ?? {
        file: from,
        clause: () => `{ ${name} as ${local} }`,
      };
      return `${kind} ${clause(local)} from ${JSON.stringify(file)};`;
    });
    made += source.slice(end, start) + lines.join("\n");
    end = after;
  }
  return made + source.slice(end);
}

/** A source that takes what it imports of Node without a module around it. */
function withoutBuiltins(source: string): string {
  let made = "";
  let end = 0;
  for (const { kind, clause, from, start, end: after } of statementsOf(source)) {
    if (kind !== "import" || !from.startsWith("node:")) continue;
    const whole = spaceOf(clause) ?? clause;
    // A whole module, or names in braces; not types, nor both.
    if (whole.includes(" ") && !whole.startsWith("{")) continue;
    const taken = whole.startsWith("{")
      ? `{ ${namesIn(whole)
          .map(({ name, local }) => `${name}: ${local}`)
          .join(", ")} }`
      : whole;
    made += `${source.slice(end, start)}const ${taken} = process.getBuiltinModule("${from}");`;
    end = after;
  }
  return made + source.slice(end);
}

export const directImports: Plugin = {
  name: "direct imports",
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) =>
      path.includes("/node_modules/")
        ? undefined
        : { contents: withoutBuiltins(await direct(readFileSync(path, "utf8"))), loader: "ts" },
    );
  },
};
