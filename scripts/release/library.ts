/**
 * The npm package `quorate`: the client, members and API servers inside a Node.js program.
 *
 *     index.js, apiserver.js    our code as JavaScript, in a few files
 *     types/                    the declarations of all that these export
 *     README.md, docs/          docs/guide/nodejs.md, and the pages that it links to
 *     package.json              npm packages that the code imports, with this commit's versions
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative } from "node:path";
import { build, type Plugin } from "esbuild";
import { isRemoved } from "../contributed.ts";
import { libraryPages } from "./documents.ts";
import { root } from "./programs.ts";
import { type Entry, tar, withDirectories } from "./tar.ts";

/** The package's entry points: its subpath, and the files whose exports it has. */
const ALL_ENTRIES: Readonly<Record<string, readonly string[]>> = {
  index: ["packages/embed/index.ts"],
  apiserver: [
    "packages/kube-storage/index.ts",
    "packages/kube-apiserver/index.ts",
    "packages/kube-apiserver/node/index.ts",
  ],
};
/** Without those of packages that were taken out. */
const ENTRIES = Object.fromEntries(
  Object.entries(ALL_ENTRIES).filter(([, sources]) => !sources.some(isRemoved)),
);

/** Node versions that have what the code uses: node:sqlite, Promise.withResolvers. */
const NODE_VERSIONS = ">=22.13";

/** The package as a tar archive, which npm takes gzipped. Rejects with esbuild's errors. */
export async function libraryArchive(version: string, mtimeSeconds: number): Promise<Uint8Array> {
  const files = await libraryFiles(version);
  const contents = [...files].map(([path, content]): Entry => {
    return { path: `package/${path}`, mode: 0o644, content };
  });
  return tar(withDirectories(contents), mtimeSeconds);
}

/** The files of the package by path, in order. */
export async function libraryFiles(version: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const { files, imported } = await bundleLibrary();
  const all = new Map<string, string | Uint8Array>([
    ["package.json", manifest(version, imported)],
    ...libraryPages(),
    ["LICENSE", readFileSync(join(root, "LICENSE"))],
    ...files,
    ...declarations(),
  ]);
  return new Map(
    [...all]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, content]) => [
        path,
        typeof content === "string" ? Buffer.from(content) : content,
      ]),
  );
}

/** The exports of an entry point, as a module. */
function entryModule(sources: readonly string[]): string {
  return sources.map((source) => `export * from ${JSON.stringify(join(root, source))};\n`).join("");
}

async function bundleLibrary(): Promise<{
  files: ReadonlyMap<string, Uint8Array>;
  imported: ReadonlySet<string>;
}> {
  const imported = new Set<string>();
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(Object.keys(ENTRIES).map((name) => [name, `entry:${name}`])),
    plugins: [entries, outsidePackages(imported)],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22",
    outdir: join(root, "dist"),
    write: false,
    legalComments: "none",
    minify: false,
    logLevel: "silent",
  });
  const files = outputFiles.map((one): [string, Uint8Array] => [
    relative(join(root, "dist"), one.path),
    one.contents,
  ]);
  return { files: new Map(files), imported };
}

const entries: Plugin = {
  name: "entries",
  setup(build) {
    build.onResolve({ filter: /^entry:/ }, ({ path }) => ({
      path: path.slice("entry:".length),
      namespace: "entry",
    }));
    build.onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => ({
      contents: entryModule(ENTRIES[path] ?? []),
      resolveDir: root,
      loader: "js",
    }));
  },
};

/** Packages of npm stay imports; their names are added to `imported`. */
function outsidePackages(imported: Set<string>): Plugin {
  return {
    name: "outside packages",
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
        const name = /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path;
        const isOurs = name.startsWith("@quorate/") || kind === "entry-point";
        if (isOurs || path.startsWith("node:")) return undefined;
        imported.add(name);
        return { path, external: true };
      });
    },
  };
}

function manifest(version: string, imported: ReadonlySet<string>): string {
  const { dependencies, description, license } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as { dependencies: Record<string, string>; description: string; license: string };
  const versions = [...imported].sort().map((name) => {
    const pinned = dependencies[name];
    if (pinned === undefined) throw new Error(`${name} is imported and is not in package.json`);
    return [name, pinned];
  });
  const exports = Object.keys(ENTRIES).map((name) => [
    name === "index" ? "." : `./${name}`,
    { types: `./types/${name}.d.ts`, default: `./${name}.js` },
  ]);
  const content = {
    name: "quorate",
    version,
    description,
    license,
    type: "module",
    engines: { node: NODE_VERSIONS },
    exports: Object.fromEntries(exports),
    dependencies: Object.fromEntries(versions),
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** The declarations that the entry points need, by path. Throws if the compiler refuses them. */
function declarations(): Map<string, string> {
  const scratch = mkdtempSync(join(tmpdir(), "quorate-types-"));
  try {
    compile(scratch);
    const made = new Map<string, string>();
    const queue = Object.values(ENTRIES).flat();
    for (let source = queue.pop(); source !== undefined; source = queue.pop()) {
      const path = `types/${source.replace(/\.ts$/, ".d.ts")}`;
      if (made.has(path)) continue;
      const { text, imports } = relocated(
        source,
        readFileSync(join(scratch, path.slice(6)), "utf8"),
      );
      made.set(path, text);
      queue.push(...imports);
    }
    for (const [name, sources] of Object.entries(ENTRIES)) {
      const lines = sources.map((one) => `export * from "./${one.replace(/\.ts$/, ".js")}";\n`);
      made.set(`types/${name}.d.ts`, lines.join(""));
    }
    return made;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function compile(outDir: string): void {
  const config = join(outDir, "tsconfig.json");
  const content = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir,
      // The compiler writes no declarations of what it finds in node_modules.
      paths: Object.fromEntries(ownEntryPoints().map(([name, path]) => [name, [join(root, path)]])),
    },
    include: [],
    files: Object.values(ENTRIES).flatMap((sources) => sources.map((one) => join(root, one))),
  };
  writeFileSync(config, JSON.stringify(content));
  const tsc = join(root, "node_modules/.bin/tsc");
  execFileSync(tsc, ["-p", config, "--typeRoots", join(root, "node_modules/@types")], {
    stdio: ["ignore", "inherit", "inherit"],
  });
}

/** Imports of our packages become relative ones, as there are no such packages elsewhere. */
function relocated(source: string, text: string): { text: string; imports: string[] } {
  const imports: string[] = [];
  const changed = text.replace(
    /(from |import\()"((?:\.|@quorate\/)[^"]*)"/g,
    (_all, before: string, specifier: string) => {
      const target = specifier.startsWith(".")
        ? posix.join(dirname(source), specifier)
        : entryFile(specifier);
      imports.push(target);
      const path = posix.relative(dirname(source), target).replace(/\.ts$/, ".js");
      return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
    },
  );
  return { text: changed, imports };
}

/** The file behind `@quorate/NAME` or `@quorate/NAME/SUBPATH`, from the root. */
function entryFile(specifier: string): string {
  const found = ownEntryPoints().find(([name]) => name === specifier);
  if (found === undefined) throw new Error(`${specifier} is no entry point`);
  return found[1];
}

/** The entry points of our packages: their specifiers and files. */
function ownEntryPoints(): [specifier: string, path: string][] {
  return readdirSync(join(root, "packages")).flatMap((name) => {
    const path = join(root, "packages", name, "package.json");
    const { exports } = JSON.parse(readFileSync(path, "utf8")) as { exports: object };
    return Object.entries(exports).map(([subpath, target]): [string, string] => [
      posix.join(`@quorate/${name}`, subpath),
      posix.join("packages", name, target),
    ]);
  });
}
