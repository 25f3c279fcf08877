/**
 * The public interface of an npm package as a text: every declaration that its entry points export,
 * and every one that these name, without comments and private parts. A change of it is a change for
 * the programs that use the package; a test compares it with the committed one.
 */
import { posix } from "node:path";
import { type ParserPlugin, parse } from "@babel/parser";

/** A syntax node, as far as the report reads it. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** A name of a file: its declaration there, or where it comes from. */
type Meaning =
  | { readonly kind: "declared"; readonly nodes: Node[] }
  | { readonly kind: "imported"; readonly from: string; readonly name: string };

interface Module {
  readonly text: string;
  /** Ranges that the report leaves out. */
  readonly comments: readonly Node[];
  readonly names: Map<string, Meaning>;
  /** Files all of whose exports this one exports. */
  readonly stars: string[];
  /** What it exports: the name outside, and the one inside. */
  readonly exported: Map<string, string>;
}

const PRIVATE = /^ {4}(?:#private;$|private )/;

const PLUGINS: ParserPlugin[] = [["typescript", { dts: true }]];

/** Declarations of one name. */
export interface Declared {
  readonly name: string;
  readonly path: string;
  /** What it is exported as; undefined where exports only name it. */
  readonly exported: string | undefined;
  /** "class", "interface", "type", "function" or "const". */
  readonly kind: string;
  /** Its comment; empty without one. */
  readonly doc: string;
  /** Without comments and private parts. */
  readonly text: string;
  /** With the comments of its parts. */
  readonly commented: string;
}

/**
 * The report.
 * @param files the package's declarations by path
 * @param entry the path of an entry point's
 * @param elsewhere says which paths' declarations are in the report of another package
 */
export function apiReport(
  files: ReadonlyMap<string, string>,
  entry: string,
  elsewhere?: (path: string) => boolean,
): string {
  const { exported, declared } = publicApi(files, entry, elsewhere);
  const names = exported.map((name) => `  ${name},\n`).join("");
  return `${[`export {\n${names}};`, ...declared.map(({ text }) => text)].join("\n\n")}\n`;
}

/** What an entry point exports, by name, and all declarations that it needs; as apiReport. */
export function publicApi(
  files: ReadonlyMap<string, string>,
  entry: string,
  elsewhere: (path: string) => boolean = () => false,
): { readonly exported: readonly string[]; readonly declared: readonly Declared[] } {
  const modules = new Map<string, Module>();
  const moduleOf = (path: string): Module => {
    let found = modules.get(path);
    if (found === undefined) {
      const text = files.get(path);
      if (text === undefined) throw new Error(`${path} is not among the declarations`);
      found = read(path, text);
      modules.set(path, found);
    }
    return found;
  };

  /** Where what a name means is declared: nowhere for what the language or Node has. */
  const find = (path: string, name: string): (readonly [path: string, name: string])[] => {
    if (!files.has(path)) return [];
    if (name === "*") return [...exportsOf(path)].flatMap((one) => find(path, one));
    const module = moduleOf(path);
    const inside = module.exported.get(name) ?? name;
    const meaning = module.names.get(inside);
    if (meaning?.kind === "declared") return [[path, inside]];
    if (meaning?.kind === "imported") return find(meaning.from, meaning.name);
    const star = module.stars.find((one) => exportsOf(one).has(name));
    return star === undefined ? [] : find(star, name);
  };

  const exportsOf = (path: string): Set<string> => {
    const module = moduleOf(path);
    return new Set([
      ...module.exported.keys(),
      ...module.stars.flatMap((one) => [...exportsOf(one)]),
    ]);
  };

  const shown = new Map<string, Declared>();
  const exported = [...exportsOf(entry)].sort();
  const outside = new Map<string, string>();
  const queue = exported.flatMap((name) => {
    const found = find(entry, name);
    if (found.length === 0) throw new Error(`${name} is declared nowhere`);
    for (const [path, inside] of found) outside.set(`${inside} ${path}`, name);
    return found;
  });
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [path, name] = next;
    const key = `${name} ${path}`;
    if (shown.has(key) || elsewhere(path)) continue;
    const module = moduleOf(path);
    const meaning = module.names.get(name);
    if (meaning?.kind !== "declared") throw new Error(`${name} is not declared in ${path}`);
    const { nodes } = meaning;
    shown.set(key, {
      name,
      path,
      exported: outside.get(key),
      kind: KINDS[nodes[0]?.type ?? ""] ?? "const",
      doc: nodes.map((node) => docOf(module, node)).find((doc) => doc !== "") ?? "",
      text: nodes.map((node) => textOf(module, node)).join("\n"),
      commented: nodes.map((node) => textOf(module, node, true)).join("\n"),
    });
    for (const used of meaning.nodes.flatMap(namesIn))
      if (module.names.has(used)) queue.push(...find(path, used));
  }
  const declared = [...shown].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  return { exported, declared };
}

const KINDS: Readonly<Record<string, string>> = {
  ClassDeclaration: "class",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
  TSDeclareFunction: "function",
};

/** The comment right before a declaration. */
function docOf({ text, comments }: Module, { start }: Node): string {
  const between = /^\s*(?:export\s+)?(?:declare\s+)?(?:abstract\s+)?$/;
  const comment = comments.findLast(
    ({ end }) => end <= start && between.test(text.slice(end, start)),
  );
  if (comment === undefined || !text.startsWith("/**", comment.start)) return "";
  return text
    .slice(comment.start + "/**".length, comment.end - "*/".length)
    .replace(/^[ \t]*\* ?/gm, "")
    .trim();
}

function read(path: string, text: string): Module {
  const { program, comments } = parse(text, { sourceType: "module", plugins: PLUGINS });
  const module: Module = {
    text,
    comments: nodesOf(comments),
    names: new Map(),
    stars: [],
    exported: new Map(),
  };
  const target = (source: unknown): string => {
    const specifier = (source as { value: string }).value;
    if (!specifier.startsWith(".")) return specifier;
    return posix.join(posix.dirname(path), specifier).replace(/\.js$/, ".d.ts");
  };
  const declare = (node: Node, isExported: boolean): void => {
    for (const name of declaredNames(node)) {
      const before = module.names.get(name);
      // Overloads, and a type and a value of one name.
      if (before?.kind === "declared") before.nodes.push(node);
      else module.names.set(name, { kind: "declared", nodes: [node] });
      if (isExported) module.exported.set(name, name);
    }
  };
  for (const node of nodesOf(program.body)) {
    if (node.type === "ImportDeclaration") {
      for (const one of nodesOf(node["specifiers"]))
        module.names.set(nameOf(one["local"]), {
          kind: "imported",
          from: target(node["source"]),
          name: one["imported"] === undefined ? "*" : nameOf(one["imported"]),
        });
    } else if (node.type === "ExportAllDeclaration") module.stars.push(target(node["source"]));
    else if (node.type === "ExportNamedDeclaration") {
      if (isNode(node["declaration"])) declare(node["declaration"], true);
      for (const one of nodesOf(node["specifiers"])) {
        const outside = nameOf(one["exported"]);
        // Of "export * as name" there is no name inside.
        const inside = one["local"] === undefined ? "*" : nameOf(one["local"]);
        module.exported.set(outside, node["source"] ? outside : inside);
        if (node["source"])
          module.names.set(outside, {
            kind: "imported",
            from: target(node["source"]),
            name: inside,
          });
      }
    } else declare(node, false);
  }
  return module;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function nodesOf(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function nameOf(node: unknown): string {
  const { name, value } = node as { name?: string; value?: string };
  return name ?? value ?? "";
}

function declaredNames(node: Node): string[] {
  if (node.type === "VariableDeclaration")
    return nodesOf(node["declarations"]).map(({ id }) => nameOf(id));
  return node["id"] ? [nameOf(node["id"])] : [];
}

/** Every identifier in a declaration. */
function namesIn(node: Node): string[] {
  const names: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (isNode(value)) {
      if (value.type === "Identifier") names.push(nameOf(value));
      for (const [field, inner] of Object.entries(value))
        if (!/Comments$/.test(field)) visit(inner);
    }
  };
  visit(node);
  return names;
}

/** The declaration's text, without private fields and empty lines, and without comments or not. */
function textOf({ text, comments }: Module, { start, end }: Node, hasComments = false): string {
  let left = "";
  let at = start;
  for (const comment of hasComments ? [] : comments) {
    if (comment.start < start || comment.end > end) continue;
    left += text.slice(at, comment.start);
    at = comment.end;
  }
  left += text.slice(at, end);
  return left
    .split("\n")
    .filter((line) => line.trim() !== "" && !PRIVATE.test(line))
    .join("\n")
    .replace(/^declare /, "");
}
