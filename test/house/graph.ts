/** Rules over the import graph: no cycles of files or folders, no dead files. */
import { posix } from "node:path";
import { CONTRIBUTIONS } from "../../scripts/contributed.ts";
import { type Import, importsOf, packageOf, startedFiles } from "./imports.ts";
import { type Finding, isCode, type SourceFile } from "./tree.ts";

/**
 * Cycles among files, each reported once, as its path of files. Type-only imports count: they tie
 * files together just as well.
 */
export function checkCycles(files: readonly SourceFile[]): Finding[] {
  return cyclesOf(edgesOf(importsOf(files))).map((cycle) => ({
    where: cycle[0],
    what: `import cycle: ${cycle.join(" -> ")}`,
  }));
}

/**
 * Cycles among the folders of a package, by the imports that remain when the code runs. A folder
 * and one within it are two. Entry points and tests are left out: they may use every folder.
 */
export function checkFolderCycles(files: readonly SourceFile[]): Finding[] {
  const edges = new Map<string, string[]>();
  const example = new Map<string, string>();
  for (const { from, target, typeOnly } of importsOf(files)) {
    if (target === undefined || typeOnly || !isLayered(from.path) || !isLayered(target)) continue;
    if (packageOf(from.path) !== packageOf(target)) continue;
    const [here, there] = [posix.dirname(from.path), posix.dirname(target)];
    if (here === there) continue;
    const targets = edges.get(here) ?? [];
    edges.set(here, targets);
    if (!targets.includes(there)) targets.push(there);
    if (!example.has(`${here} ${there}`)) example.set(`${here} ${there}`, from.path);
  }
  return cyclesOf(edges).map((cycle) => {
    const steps = cycle.slice(1).map((there, at) => {
      const file = example.get(`${cycle[at]} ${there}`)!;
      return `${there} (by ${posix.basename(file)})`;
    });
    return { where: cycle[0], what: `folder cycle: ${[cycle[0], ...steps].join(" -> ")}` };
  });
}

/** Files of a package's folders: neither an entry point nor a test. */
function isLayered(path: string): boolean {
  return /^packages\/[\w-]+\/(?:src|node)\/(?!index\.ts$)/.test(path);
}

/** Cycles of a graph, each once, as the path of its nodes from a node back to it. */
function cyclesOf(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const done = new Set<string>();
  const cycles: string[][] = [];
  const visit = (node: string, trail: string[]): void => {
    const start = trail.indexOf(node);
    if (start !== -1) {
      cycles.push([...trail.slice(start), node]);
      return;
    }
    if (done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...trail, node]);
    done.add(node);
  };
  for (const node of [...edges.keys()].sort()) visit(node, []);
  return cycles;
}

function edgesOf(imports: readonly Import[]): Map<string, string[]> {
  const edges = new Map<string, string[]>();
  for (const one of imports) {
    if (one.target === undefined) continue;
    const targets = edges.get(one.from.path) ?? [];
    edges.set(one.from.path, targets);
    if (!targets.includes(one.target)) targets.push(one.target);
  }
  return edges;
}

function isContribution(path: string): boolean {
  const name = /^packages\/[\w-]+\/test\/(\w+)\.ts$/.exec(path)?.[1];
  return CONTRIBUTIONS.some((one) => one === name);
}

/**
 * Where reachability starts: entry points, main files, executables, examples, tests, and what
 * package.json scripts, shell scripts and `./dev` name.
 */
function isEntrance(path: string, named: string): boolean {
  if (/^packages\/[\w-]+\/(?:(?:node|testing)\/)?index\.ts$/.test(path)) return true;
  if (/^packages\/[\w-]+\/(?:node|bin)\/(?:[\w-]*-)?main\.ts$/.test(path)) return true;
  if (path === "scripts/dev/main.ts" || isContribution(path)) return true;
  // What a page that is served loads first.
  if (/^packages\/[\w-]+\/page\/main\.js$/.test(path)) return true;
  if (/^(?:bin|examples|packages\/[\w-]+\/examples)\//.test(path) || /\.test\.ts$/.test(path))
    return true;
  if (named.includes(path)) return true;
  return packageOf(path) === undefined && named.includes(path.split("/").slice(-2).join("/"));
}

/** Files whose texts name programs. */
const NAMING =
  /^(?:package\.json|\.ci\/run|dev|scripts\/dev\/commands\.ts)$|^packages\/[\w-]+\/test\/commands\.ts$|\.sh$/;

/**
 * Code files that no entry point, main file, test, package script or shell script reaches.
 * @param generated generated code, whose imports are alive
 */
export function checkDeadFiles(
  files: readonly SourceFile[],
  generated: readonly SourceFile[] = [],
): Finding[] {
  const named = files
    .filter((file) => NAMING.test(file.path))
    .map((file) => file.text)
    .join("\n");
  const code = new Map(files.filter(isCode).map((file) => [file.path, file]));
  const edges = edgesOf(importsOf(files));
  const alive = new Set<string>();
  const queue = [...code.keys()].filter((path) => isEntrance(path, named));
  for (const { target } of importsOf(generated)) if (target !== undefined) queue.push(target);
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (alive.has(path)) continue;
    alive.add(path);
    const file = code.get(path);
    if (file !== undefined) queue.push(...(edges.get(path) ?? []), ...startedFiles(file));
  }
  return [...code.keys()]
    .filter((path) => !alive.has(path))
    .map((path) => ({ where: path, what: "dead file: nothing reaches it" }));
}

/** Relative imports of files that do not exist. */
export function checkMissing(files: readonly SourceFile[]): Finding[] {
  const paths = new Set(files.map((file) => file.path));
  return importsOf(files)
    .filter(
      (one) => one.target !== undefined && !one.target.includes("/gen/") && !paths.has(one.target),
    )
    .map((one) => ({
      where: `${one.from.path}:${one.line}`,
      what: `imports ${one.specifier}, which is not there`,
    }));
}
