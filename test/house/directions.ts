/** Imports run one way, and only through entry points. */
import { type Import, importsOf, packageOf } from "./imports.ts";
import { type Finding, isCode, type SourceFile } from "./tree.ts";

/**
 * For each package the packages it may import. "types" allows `import type` only. The simulator may
 * import all.
 */
export const directions: Readonly<Record<string, Readonly<Record<string, "all" | "types">>>> = {
  proto: {},
  host: {},
  raft: { proto: "all" },
  rpc: { proto: "all", host: "all" },
  wal: { proto: "all", host: "all", raft: "types" },
  bolt: { proto: "all", host: "all" },
  store: { proto: "all", host: "all", raft: "types", bolt: "all" },
  backup: { proto: "all", host: "all", wal: "all", store: "all", bolt: "all", client: "types" },
  transport: { proto: "all", host: "all", raft: "types" },
  server: {
    proto: "all",
    host: "all",
    raft: "all",
    rpc: "all",
    wal: "all",
    store: "all",
    transport: "all",
    // For discovery, which is another cluster.
    client: "all",
  },
  apiserver: {
    proto: "all",
    host: "all",
    rpc: "all",
    client: "all",
    server: "all",
    ctl: "all",
    embed: "all",
  },
  proxy: { proto: "all", host: "all", rpc: "all", server: "all", ctl: "all", apiserver: "all" },
  client: { proto: "all", host: "all", rpc: "all" },
  // What a program gets that runs a member, and the client, in its own process.
  embed: { proto: "all", host: "all", client: "all", server: "all" },
  ctl: {
    client: "all",
    proto: "all",
    host: "all",
    wal: "all",
    store: "all",
    bolt: "all",
    backup: "all",
  },
};

/** Tests, contract suites, the simulator, scripts, benchmarks, examples: any entry point. */
function mayImportAnything(path: string): boolean {
  return (
    /^packages\/(?:[\w-]+\/(?:test|testing)|sim)\//.test(path) ||
    /^(?:scripts|test|bench|examples)\//.test(path)
  );
}

/** Places that may use the entry points with effects (`@quorate/X/node`). */
function mayUseNodeEntryPoints(path: string): boolean {
  return (
    mayImportAnything(path) ||
    /^packages\/[\w-]+\/(?:node|bin)\//.test(path) ||
    /^packages\/ctl\//.test(path) ||
    /^bin\//.test(path)
  );
}

/**
 * Imports against the plan: wrong direction, past an entry point, or of an entry point with effects
 * from a pure package.
 */
export function checkDirections(files: readonly SourceFile[]): Finding[] {
  return importsOf(files).flatMap((one) => {
    const what = wrongWith(one);
    return what === undefined ? [] : [{ where: `${one.from.path}:${one.line}`, what }];
  });
}

function wrongWith(one: Import): string | undefined {
  if (one.target === undefined) return undefined;
  const here = packageOf(one.from.path);
  const there = packageOf(one.target);
  if (here === there) {
    if (one.specifier.startsWith("@quorate/") && !mayImportAnything(one.from.path))
      return `imports its own package as ${one.specifier}`;
    return undefined;
  }
  if (there === undefined) {
    if (here === undefined || mayImportAnything(one.from.path)) return undefined;
    return `a package imports ${one.target}, which is outside packages/`;
  }
  if (one.specifier.startsWith(".") && !one.from.path.startsWith("bin/"))
    return `reaches into packages/${there}: import its entry point, @quorate/${there}`;
  if (
    !/^@quorate\/[\w-]+(?:\/(?:node|client|testing))?$/.test(one.specifier) &&
    !one.specifier.startsWith(".")
  ) {
    return `${one.specifier} is not an entry point: only @quorate/${there}, its /node, /client and /testing are`;
  }
  if (one.specifier.endsWith("/testing") && !mayImportAnything(one.from.path))
    return `${one.specifier} is for tests`;
  if (
    /\/(?:node|client)$/.test(one.specifier) &&
    one.specifier !== "@quorate/client" &&
    !mayUseNodeEntryPoints(one.from.path)
  )
    return `${one.specifier} has effects: pure code takes an interface`;
  if (
    there === "sim" &&
    !/^(?:packages\/(?:sim|apiserver\/test)|test|scripts)\//.test(one.from.path)
  )
    return "only tests import sim";
  if (here === undefined || mayImportAnything(one.from.path)) return undefined;
  const allowed = directions[here]?.[there];
  if (allowed === undefined) return `${here} may not import ${there}`;
  if (allowed === "types" && !one.typeOnly) return `${here} may import only types of ${there}`;
  return undefined;
}

/**
 * Each package with code has one entry point, index.ts, which only re-exports; package.json names
 * no other than it, node, client (what a program loads that only calls) and testing.
 */
export function checkEntryPoints(files: readonly SourceFile[]): Finding[] {
  const findings: Finding[] = [];
  const paths = new Set(files.map((file) => file.path));
  for (const file of files) {
    const name = /^packages\/([\w-]+)\/package\.json$/.exec(file.path)?.[1];
    if (name === undefined) continue;
    const hasCode = files.some(
      (other) => isCode(other) && other.path.startsWith(`packages/${name}/src/`),
    );
    if (hasCode && !paths.has(`packages/${name}/index.ts`))
      findings.push({ where: `packages/${name}`, what: "has code but no index.ts" });
    const entryPoints =
      (JSON.parse(file.text) as { exports?: Record<string, string> }).exports ?? {};
    for (const [name, target] of Object.entries(entryPoints)) {
      const expected = {
        ".": "./index.ts",
        "./client": "./client/index.ts",
        "./node": "./node/index.ts",
        "./testing": "./testing/index.ts",
      }[name];
      if (expected !== target)
        findings.push({
          where: file.path,
          what: `exports ${name} as ${target}: not an entry point`,
        });
    }
  }
  for (const file of files.filter((one) =>
    /^packages\/[\w-]+\/(?:node\/|client\/|testing\/)?index\.ts$/.test(one.path),
  )) {
    const code = file.text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
    const rest = code
      .replace(/^export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+"[^"]+";$/gm, "")
      .trim();
    if (rest !== "")
      findings.push({
        where: file.path,
        what: `an entry point only re-exports, but holds: ${rest.split("\n")[0]}`,
      });
  }
  return findings;
}
