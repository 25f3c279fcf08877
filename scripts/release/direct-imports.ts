/**
 * Two changes of imports, with which a program starts in less time:
 *
 *     import { defined } from "@quorate/proto";    import { defined } from ".../src/invariant.ts";
 *     import { spawn } from "node:child_process";  const { spawn } = process.getBuiltinModule(...);
 *
 * esbuild splits a bundle by what files import, whatever they use of it: by way of a package's index
 * each program would read, and evaluate, all that any program needs of the package. This is for
 * packages whose package.json says that their files have no side effects.
 *
 * Node makes a module of each of its own that is imported, with all that it exports. That of
 * node:fs loads streams and promises, which nobody may want.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";
import { root } from "./programs.ts";

const IMPORT = /^(?<kind>import|export) (?<names>\{[^{}]*\}) from "@quorate\/(?<from>[^"]+)";$/gm;
const BUILTIN =
  /^import (?:(?<names>\{[^{}]*\})|(?:\* as )?(?<whole>\w+)) from (?<from>"node:[^"]+");$/gm;
const EXPORT =
  /^export (?:\* as (?<space>\w+)|(?<all>\*)|(?<names>\{[^{}]*\})) from "(?<from>[^"]+)";$/gm;

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
  for (const { groups = {} } of readFileSync(index, "utf8").matchAll(EXPORT)) {
    const from = groups["from"] ?? "";
    if (!from.startsWith(".")) {
      const other = await declaredBy(from.replace("@quorate/", ""));
      for (const { name, local } of namesIn(groups["names"] ?? "{}")) {
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
    if (groups["space"] !== undefined)
      declared.set(groups["space"], { file, clause: (local) => `* as ${local}` });
    else if (groups["all"] !== undefined)
      for (const name of Object.keys(await import(pathToFileURL(file).href)))
        declared.set(name, named(name));
    else
      for (const { name, local } of namesIn(groups["names"] ?? "{}"))
        declared.set(local, named(name));
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
  for (const match of source.matchAll(IMPORT)) {
    const { kind = "", names = "{}", from = "" } = match.groups ?? {};
    const declared = await declaredBy(from);
    if (declared === undefined) continue;
    const lines = namesIn(names).map(({ name, local }) => {
      const { file, clause } = declared.get(name) ?? {
        file: `@quorate/${from}`,
        clause: () => `{ ${name} as ${local} }`,
      };
      return `${kind} ${clause(local)} from ${JSON.stringify(file)};`;
    });
    made += source.slice(end, match.index) + lines.join("\n");
    end = match.index + match[0].length;
  }
  return made + source.slice(end);
}

/** A source that takes what it imports of Node without a module around it. */
function withoutBuiltins(source: string): string {
  return source.replaceAll(BUILTIN, (...match) => {
    const { names, whole, from } = match.at(-1) as Readonly<Record<string, string | undefined>>;
    const taken = namesIn(names ?? "{}").map(({ name, local }) => `${name}: ${local}`);
    return `const ${whole ?? `{ ${taken.join(", ")} }`} = process.getBuiltinModule(${from});`;
  });
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
