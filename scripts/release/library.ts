/**
 * The packages for npm: `quorate`, with the client, members and API servers inside a Node.js
 * program, `@quorate/client`, with the client alone, `@quorate/testing` and
 * `@quorate/kube-testing`, for tests, and `create-quorate`, which makes programs from the examples.
 *
 *     index.js, ...             our code as JavaScript, in a few files, each with its source map
 *     types/                    the declarations of all that these export
 *     README.md, docs/          the package's page, and the pages that it links to
 *     CHANGELOG.md              what its versions changed
 *     package.json              npm packages that the code imports, with this commit's versions
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative } from "node:path";
import { build, type Plugin } from "esbuild";
import { isRemoved } from "../contributed.ts";
import { entryPoints } from "./bundle.ts";
import { libraryPages } from "./documents.ts";
import { root } from "./programs.ts";
import { type Entry, tar, withDirectories } from "./tar.ts";

/** A package for npm. */
export interface Library {
  readonly name: string;
  readonly description: string;
  readonly keywords: readonly string[];
  /** The Node versions that have what the code uses. */
  readonly node: string;
  /** The oldest of them, as esbuild names it. */
  readonly target: string;
  /** The page that is its README. */
  readonly page: string;
  /** The page of its versions, where it has one of its own. */
  readonly changes?: string;
  /** The entry points by subpath ("index" is the package itself): files whose exports each has. */
  readonly entries: Readonly<Record<string, readonly string[]>>;
  /** Its executable, which npm runs by the package's name. */
  readonly program?: string;
  /** Directories of the repository that it has copies of: programs with a package.json each. */
  readonly copies?: string;
}

const KEYWORDS = ["etcd", "etcd3", "key-value", "lease", "lock", "leader-election", "watch"];

const all: readonly Library[] = [
  {
    name: "quorate",
    description: "A clustered key-value store that speaks etcd's v3 protocol, in your program",
    keywords: [...KEYWORDS, "raft", "database", "kubernetes"],
    // node:sqlite
    node: ">=22.13",
    target: "node22",
    page: "docs/guide/nodejs.md",
    entries: withoutRemoved({
      index: ["packages/embed/index.ts"],
      apiserver: [
        "packages/kube-storage/index.ts",
        "packages/kube-apiserver/index.ts",
        "packages/kube-apiserver/node/index.ts",
      ],
      cli: ["packages/quorate/node/main.ts"],
    }),
    program: `#!/usr/bin/env node
import { main } from "./cli.js";

await main();
`,
  },
  {
    name: "@quorate/client",
    description: "A client of etcd and Quorate: keys, watches, leases, locks, elections",
    keywords: KEYWORDS,
    // process.getBuiltinModule
    node: ">=20.16",
    target: "node20",
    page: "docs/guide/client.md",
    changes: "packages/client/CHANGELOG.md",
    entries: { index: ["packages/client/index.ts"], etcd3: ["packages/client/etcd3/index.ts"] },
  },
  {
    name: "@quorate/testing",
    description: "Clusters of etcd's protocol in tests, and programs under a simulator",
    keywords: [...KEYWORDS, "testing", "simulation", "testcontainers"],
    node: ">=22.13",
    target: "node22",
    page: "docs/guide/testing.md",
    entries: { index: ["packages/testing/index.ts"] },
  },
  {
    name: "create-quorate",
    description: "Makes a program that uses etcd's protocol, with its test: npm create quorate",
    keywords: KEYWORDS,
    node: ">=20.16",
    target: "node20",
    page: "docs/guide/examples.md",
    entries: { index: ["packages/create/index.ts"] },
    program: `#!/usr/bin/env node
import { fileURLToPath } from "node:url";
import { createProgram } from "./index.js";

const examples = fileURLToPath(new URL("./examples", import.meta.url));
const output = { out: console.log, error: console.error };
process.exitCode = createProgram(process.argv.slice(2), examples, output);
`,
    copies: "examples",
  },
  {
    name: "@quorate/kube-testing",
    description: "A Kubernetes API server in tests of controllers and webhooks, without Docker",
    keywords: ["kubernetes", "testing", "envtest", "controller", "operator", "webhook"],
    node: ">=22.13",
    target: "node22",
    page: "docs/guide/kubernetes-node.md",
    entries: withoutRemoved({ index: ["packages/kube-apiserver/testing/index.ts"] }),
  },
];

/** Those of which something is left. */
export const libraries: readonly Library[] = all.filter(
  ({ entries }) => Object.keys(entries).length > 0,
);

/** Without those of packages that were taken out. */
function withoutRemoved(entries: Library["entries"]): Library["entries"] {
  return Object.fromEntries(
    Object.entries(entries).filter(([, sources]) => !sources.some(isRemoved)),
  );
}

/** The name of the package's archive, as npm gives it. */
export function archiveName({ name }: Library, version: string): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

/** The package as a tar archive, which npm takes gzipped. Rejects with esbuild's errors. */
export async function libraryArchive(
  library: Library,
  version: string,
  mtimeSeconds: number,
): Promise<Uint8Array> {
  const files = await libraryFiles(library, version);
  const contents = [...files].map(([path, content]): Entry => {
    return { path: `package/${path}`, mode: 0o644, content };
  });
  return tar(withDirectories(contents), mtimeSeconds);
}

/** The files of the package by path, in order. */
export async function libraryFiles(
  library: Library,
  version: string,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const { files, imported } = await bundleLibrary(library);
  const all = new Map<string, string | Uint8Array>([
    ...libraryPages(library.page),
    ["LICENSE", readFileSync(join(root, "LICENSE"))],
    ...files,
    ...declarations(library),
    ...(library.program === undefined ? [] : [[PROGRAM, library.program] as const]),
    ...copiesOf(library),
  ]);
  if (library.changes !== undefined)
    all.set("CHANGELOG.md", readFileSync(join(root, library.changes)));
  const parts = new Set([...all.keys()].map((path) => path.split("/")[0]!));
  all.set("package.json", manifest(library, version, imported, [...parts].sort()));
  return new Map(
    [...all]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, content]) => [
        path,
        typeof content === "string" ? Buffer.from(content) : content,
      ]),
  );
}

/** The file of a package's executable. */
const PROGRAM = "program.js";

function copiesOf({ copies }: Library): [path: string, content: Uint8Array][] {
  if (copies === undefined) return [];
  const home = join(root, copies);
  return readdirSync(home)
    .filter((name) => existsSync(join(home, name, "package.json")))
    .flatMap((name) => readdirSync(join(home, name)).map((file) => `${copies}/${name}/${file}`))
    .map((path) => [path, readFileSync(join(root, path))]);
}

/** The exports of an entry point, as a module. */
function entryModule(sources: readonly string[]): string {
  return sources.map((source) => `export * from ${JSON.stringify(join(root, source))};\n`).join("");
}

async function bundleLibrary({ entries, target }: Library): Promise<{
  files: ReadonlyMap<string, Uint8Array>;
  imported: ReadonlySet<string>;
}> {
  const imported = new Set<string>();
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(Object.keys(entries).map((name) => [name, `entry:${name}`])),
    plugins: [entryPoints((name) => entryModule(entries[name] ?? [])), outsidePackages(imported)],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target,
    // Without the sources' text: names and lines of a stack trace are what a reader needs.
    sourcemap: "linked",
    sourcesContent: false,
    outdir: join(root, "dist"),
    write: false,
    legalComments: "none",
    // Lines and names stay; the client's package has a megabyte.
    minifySyntax: true,
    logLevel: "silent",
  });
  const files = outputFiles.map((one): [string, Uint8Array] => [
    relative(join(root, "dist"), one.path),
    one.contents,
  ]);
  return { files: new Map(files), imported };
}

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

function manifest(
  { name, description, keywords, node, entries, program }: Library,
  version: string,
  imported: ReadonlySet<string>,
  files: readonly string[],
): string {
  const { dependencies, license, repository } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as { dependencies: Record<string, string>; license: string; repository?: string };
  const versions = [...imported].sort().map((one) => {
    const pinned = dependencies[one];
    if (pinned === undefined) throw new Error(`${one} is imported and is not in package.json`);
    return [one, pinned];
  });
  const exports = Object.keys(entries).map((entry) => [
    entry === "index" ? "." : `./${entry}`,
    { types: `./types/${entry}.d.ts`, default: `./${entry}.js` },
  ]);
  const content = {
    name,
    version,
    description,
    keywords,
    license,
    // npm publishes with provenance only what names the repository that it was built from.
    ...(repository === undefined ? {} : { repository }),
    type: "module",
    engines: { node },
    // For tools that do not know "exports".
    main: "./index.js",
    types: "./types/index.d.ts",
    ...(program === undefined ? {} : { bin: `./${PROGRAM}` }),
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
    files,
    sideEffects: false,
    // Published from the project's own pipeline, with a proof of the commit.
    publishConfig: { access: "public", provenance: true },
    dependencies: Object.fromEntries(versions),
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** The declarations that entry points need, by path. Throws if the compiler refuses them. */
export function declarations({ entries }: Pick<Library, "entries">): Map<string, string> {
  const scratch = mkdtempSync(join(tmpdir(), "quorate-types-"));
  try {
    compile(scratch, Object.values(entries).flat());
    const made = new Map<string, string>();
    const queue = Object.values(entries).flat();
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
    for (const [name, sources] of Object.entries(entries)) {
      const lines = sources.map((one) => `export * from "./${one.replace(/\.ts$/, ".js")}";\n`);
      made.set(`types/${name}.d.ts`, lines.join(""));
    }
    return made;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** @param files from the root */
function compile(outDir: string, files: readonly string[]): void {
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
    files: files.map((one) => join(root, one)),
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
