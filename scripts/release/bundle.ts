/**
 * All programs as a few JavaScript files, so that a start reads a handful of files instead of
 * hundreds and translates no TypeScript. What several programs share, and what is imported when it
 * is needed (`await import`), is in files of its own. Same sources, same bytes.
 */

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { defined } from "@quorate/proto";
import { build, type ImportKind, type Plugin } from "esbuild";
import { directImports } from "./direct-imports.ts";
import { namedExports } from "./named-exports.ts";
import { type ReleaseProgram, root } from "./programs.ts";

/** The native module's name beside the bundle's files. */
export const NATIVE_MODULE = "classic-level.node";

/** The bundled programs. */
export interface Bundle {
  /** Content by file name; PROGRAM.mjs starts a program. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The sources in each file, from the root. */
  readonly sources: ReadonlyMap<string, readonly string[]>;
  /** The files that each file imports at once, not by `await import`. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  /** The files that each file imports when they are needed. */
  readonly laterImports: ReadonlyMap<string, readonly string[]>;
  /** npm packages of which code is in the bundle. */
  readonly packages: readonly string[];
}

/** Bundles `programs`. Rejects with esbuild's errors. */
export async function bundlePrograms(programs: readonly ReleaseProgram[]): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(
      programs.map((program) => [program.name, `entry:${program.name}`]),
    ),
    plugins: [
      entryPoints((name) => firstLines(programs, name)),
      nativeModule,
      consolePage,
      namedExports,
      directImports,
    ],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node26",
    outdir: join(root, "dist"),
    outExtension: { ".js": ".mjs" },
    write: false,
    metafile: true,
    // Licences are whole files of the archive.
    legalComments: "none",
    // Stack traces stay readable; white space costs nothing that can be measured.
    minify: false,
    // CommonJS packages ask for these. What makes a whole `require` takes time in each file.
    banner: {
      js:
        "const require = (name) => process.getBuiltinModule(name) ?? " +
        'process.getBuiltinModule("node:module").createRequire(import.meta.url)(name);',
    },
    define: { __dirname: "import.meta.dirname", __filename: "import.meta.filename" },
    logLevel: "silent",
  });
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => ({
    name: basename(path),
    output,
  }));
  const importsOf = (kind: ImportKind) =>
    new Map(
      outputs.map(({ name, output }) => [
        name,
        output.imports
          .filter((one) => one.kind === kind && one.external !== true)
          .map((one) => basename(one.path)),
      ]),
    );
  return {
    files: new Map(outputFiles.map((file) => [basename(file.path), file.contents])),
    sources: new Map(outputs.map(({ name, output }) => [name, Object.keys(output.inputs)])),
    imports: importsOf("import-statement"),
    laterImports: importsOf("dynamic-import"),
    packages: [
      ...new Set(outputs.flatMap(({ output }) => Object.keys(output.inputs).flatMap(packageOf))),
    ].sort(),
  };
}

/** The files that are read when `program` starts, before it does anything. */
export function startFiles(bundle: Bundle, program: string): string[] {
  return reached(program, (name) => bundle.imports.get(name) ?? []);
}

/** The sources of all that `program` imports, at its start or later; from the root. */
export function sourcesOf(bundle: Bundle, program: string): string[] {
  const files = reached(program, (name) => [
    ...(bundle.imports.get(name) ?? []),
    ...(bundle.laterImports.get(name) ?? []),
  ]);
  return [...new Set(files.flatMap((name) => bundle.sources.get(name) ?? []))];
}

function reached(program: string, next: (name: string) => readonly string[]): string[] {
  const found = new Set<string>();
  const queue = [`${program}.mjs`];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    queue.push(...next(name));
  }
  return [...found];
}

function packageOf(path: string): string[] {
  const at = path.lastIndexOf("node_modules/");
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path.slice(at));
  return at === -1 || found === null ? [] : [found[1]];
}

/** Entry points "entry:NAME" whose module is a text. */
export function entryPoints(contentsOf: (name: string) => string): Plugin {
  return {
    name: "entries",
    setup(build) {
      build.onResolve({ filter: /^entry:/ }, ({ path }) => ({
        path: path.slice("entry:".length),
        namespace: "entry",
      }));
      build.onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => ({
        contents: contentsOf(path),
        resolveDir: root,
        loader: "js",
      }));
    },
  };
}

/** A program's first lines: import its file and, where that exports `main`, run it. */
function firstLines(programs: readonly ReleaseProgram[], name: string): string {
  const { file, hasMain } = defined(
    programs.find((program) => program.name === name),
    "the program",
  );
  const from = JSON.stringify(join(root, file));
  return hasMain ? `import { main } from ${from};\nawait main();` : `import ${from};`;
}

/**
 * classic-level looks for its compiled part in its own directory; in a release that lies beside the
 * bundle.
 */
const nativeModule: Plugin = {
  name: "native module",
  setup(build) {
    build.onLoad({ filter: /\/classic-level\/binding\.js$/ }, ({ path }) => {
      if (!readFileSync(path, "utf8").includes("node-gyp-build"))
        throw new Error(`${path} finds its native module in a new way`);
      return { contents: `module.exports = require("./${NATIVE_MODULE}");`, loader: "js" };
    });
    build.onResolve({ filter: /\.node$/ }, ({ path }) => ({ path, external: true }));
  },
};

/** The console's page is a folder of files beside the source; in a bundle they are texts. */
const consolePage: Plugin = {
  name: "console page",
  setup(build) {
    build.onLoad({ filter: /\/console\/node\/page-files\.ts$/ }, ({ path }) => {
      const resolveDir = join(dirname(path), "../page");
      const names = readdirSync(resolveDir);
      const imports = names.map(
        (name, i) => `import text${i} from "./${name}" with { type: "text" };`,
      );
      const entries = names.map((name, i) => `["${name}", text${i}]`);
      const made = `export const pageFiles = new Map([${entries.join(", ")}]);`;
      return { contents: [...imports, made].join("\n"), resolveDir, loader: "js" };
    });
  },
};
