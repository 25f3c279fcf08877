/** Imports run one way, and only through entry points. */
import { type Import, importsOf, packageOf } from "./imports.ts";
import { type Finding, isCode, type SourceFile } from "./tree.ts";

/**
 * For each package the packages it may import, those that are lower first. A name ending in "(t)"
 * allows `import type` only. The simulator may import all but kube-apiserver.
 */
const allowed: Readonly<Record<string, string>> = {
  proto: "",
  host: "",
  metrics: "host",
  cli: "proto host",
  raft: "proto",
  wal: "proto host raft(t)",
  bolt: "proto host",
  store: "proto host raft(t) bolt",
  transport: "proto host raft(t)",
  rpc: "proto host metrics",
  front: "proto host rpc",
  member: "proto host metrics raft rpc wal store transport",
  services: "proto host metrics rpc store member",
  "http-kv": "proto host rpc store member services",
  v2: "proto host metrics rpc store member services http-kv",
  console: "proto host metrics rpc store transport(t) member services kube-storage",
  client: "proto host rpc",
  // The client is for discovery, which is another cluster.
  server:
    "proto host metrics raft rpc front store transport member services http-kv v2 console client",
  // A member, and the client, in the process of a program.
  embed: "proto host rpc client member server",
  // Clusters in tests, and programs under the simulator.
  testing: "proto host rpc transport(t) store member client server embed",
  backup: "proto host metrics wal bolt store client(t)",
  ctl: "proto host cli wal bolt store client backup kube-storage",
  proxy: "proto host metrics cli rpc client member server ctl",
  "kube-storage": "proto host metrics",
  "kube-apiserver": "proto host metrics cli rpc client member server embed kube-storage",
  // A member beside etcd's, and quoratectl's ways to the cluster.
  shadow: "proto host metrics cli store transport(t) client member server ctl",
  operator: "proto host metrics cli client backup kube-storage",
  // Copies examples; it is an npm package of its own.
  create: "",
  quorate: "host cli server proxy operator shadow kube-apiserver",
};

/** What `allowed` says, by package. */
export const directions: Readonly<Record<string, ReadonlyMap<string, "all" | "types">>> =
  Object.fromEntries(
    Object.entries(allowed).map(([name, list]) => [
      name,
      new Map(
        list
          .split(" ")
          .filter((one) => one !== "")
          .map((one): [string, "all" | "types"] =>
            one.endsWith("(t)") ? [one.slice(0, -"(t)".length), "types"] : [one, "all"],
          ),
      ),
    ]),
  );

/** Tests, contract suites, the simulator, scripts, benchmarks, examples: any entry point. */
function mayImportAnything(path: string): boolean {
  return (
    /^packages\/(?:[\w-]+\/(?:test|testing|examples)|sim)\//.test(path) ||
    /^(?:scripts|test|bench|examples)\//.test(path)
  );
}

/** Places that may use the entry points with effects (`@quorate/X/node`). */
function mayUseNodeEntryPoints(path: string): boolean {
  return (
    mayImportAnything(path) ||
    /^packages\/[\w-]+\/(?:node|bin)\//.test(path) ||
    /^packages\/(?:ctl|cli)\//.test(path) ||
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
    !/^@quorate\/[\w-]+(?:\/(?:node|client|etcd3|testing))?$/.test(one.specifier) &&
    !one.specifier.startsWith(".")
  ) {
    return `${one.specifier} is not an entry point: only @quorate/${there}, its /node, /client, /etcd3 and /testing are`;
  }
  if (one.specifier.endsWith("/testing") && !mayImportAnything(one.from.path))
    return `${one.specifier} is for tests`;
  if (
    /\/(?:node|client)$/.test(one.specifier) &&
    one.specifier !== "@quorate/client" &&
    !mayUseNodeEntryPoints(one.from.path)
  )
    return `${one.specifier} has effects: pure code takes an interface`;
  if (there === "sim")
    return /^(?:packages\/(?:sim|testing|kube-storage\/test|kube-apiserver\/test)|test|scripts)\//.test(
      one.from.path,
    )
      ? undefined
      : "only tests, and the package for tests, import sim";
  if (there === "kube-apiserver" && here !== "quorate")
    return "only the program imports kube-apiserver, so that it can be taken out";
  if (here === undefined || mayImportAnything(one.from.path)) return undefined;
  const allows = directions[here]?.get(there);
  if (allows === undefined) return `${here} may not import ${there}`;
  if (allows === "types" && !one.typeOnly) return `${here} may import only types of ${there}`;
  return undefined;
}

/**
 * Each package with code has one entry point, index.ts, which only re-exports; package.json names
 * no other than it, node, client (what a program loads that only calls), etcd3 (the client in the
 * shape of npm's etcd3) and testing.
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
        "./etcd3": "./etcd3/index.ts",
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
    /^packages\/[\w-]+\/(?:node\/|client\/|etcd3\/|testing\/)?index\.ts$/.test(one.path),
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
