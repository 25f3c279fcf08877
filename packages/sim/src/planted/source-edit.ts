/**
 * Finds the place of a planted bug in a source by its syntax tree: a symbol, and inside it the one
 * expression, or run of statements, that has the shape of a pattern. Lines, comments and names of
 * variables do not count, so a bug outlives what a formatter or a rename does.
 *
 *     at    store/src/auth/authorize.ts#authorize     a file below packages, and a symbol of it
 *     find  $rev < $state.revision                    $rev and $state stand for any expression
 *     put   $rev > $state.revision                    and here for the text that they stood for
 *
 * A symbol is a function, class, constant or member, with what it stands in: `Log.#truncate`. A
 * variable stands for the same text everywhere in a pattern; as a statement of its own (`$x;`) it
 * stands for a statement. A shorthand property is the same as the long one; the mark after an
 * expression that is not undefined (!) does not count.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "@babel/parser";
import type { SourceEdit } from "@quorate/host/testing";
import type { Changes } from "../base/options.ts";

/** A change of one place in a member's source. */
export interface SourceBug {
  /** A file below packages, "#", and a symbol. */
  readonly at: string;
  /** The pattern of an expression or of statements; it is found exactly once in the symbol. */
  readonly find: string;
  /** What stands there with the bug; empty to leave it out. */
  readonly put: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

interface Match {
  readonly start: number;
  readonly end: number;
  readonly bound: ReadonlyMap<string, string>;
}

type Pattern = { readonly expression: Node } | { readonly statements: readonly Node[] };

const VARIABLE = /\$[A-Za-z_]\w*/g;
const PACKAGES = new URL("../../../", import.meta.url);
/** Fields of nodes that say where they stand or how they are written, not what they mean. */
const WRITING = new Set([
  "type",
  "start",
  "end",
  "loc",
  "extra",
  "shorthand",
  "leadingComments",
  "innerComments",
  "trailingComments",
]);
/** What may be missing in a fragment because it is part of a class. */
const TOLERATED = new Set(["InvalidPrivateFieldResolution"]);

/** The file of a bug, below packages. */
export const fileOf = ({ at }: Pick<SourceBug, "at">): string => at.slice(0, at.indexOf("#"));

/**
 * The change of the file's text. Throws an Error that says what is wrong if there is no such file
 * or symbol, if the pattern is not in it exactly once, or if the bug names what the file does not
 * have.
 */
export function editOf(bug: SourceBug): SourceEdit {
  const file = fileOf(bug);
  const path = fileURLToPath(new URL(file, PACKAGES));
  return { path, ...placeOf(readFileSync(path, "utf8"), bug) };
}

/** The same for a text that stands for the file. */
export function placeOf(source: string, { at, find, put }: SourceBug): Omit<SourceEdit, "path"> {
  const program = parsed(source);
  const symbol = at.slice(at.indexOf("#") + 1);
  const owners = symbolsOf(program).filter(({ name }) => name === symbol);
  if (owners.length === 0) throw new Error(`packages/${fileOf({ at })} has no ${symbol}`);
  const pattern = patternOf(find);
  const matches = owners.flatMap(({ node }) => matchesIn(node, pattern, source));
  const [match] = matches;
  if (match === undefined || matches.length > 1)
    throw new Error(`packages/${at} has ${matches.length} places of the shape: ${find}`);
  const text = put.trim().replace(VARIABLE, (name) => {
    const bound = match.bound.get(name);
    if (bound === undefined) throw new Error(`${name} is in no pattern: ${find}`);
    return bound;
  });
  const strange = strangers(text, program);
  if (strange.length > 0) throw new Error(`packages/${at} knows no ${strange.join(", ")}: ${put}`);
  return { start: match.start, end: match.end, text: text === "" ? ";" : text };
}

function parsed(source: string): Node {
  const { program, errors } = parse(source, {
    sourceType: "module",
    plugins: ["typescript"],
    errorRecovery: true,
  });
  const error = errors?.find(({ reasonCode }) => !TOLERATED.has(reasonCode));
  if (error !== undefined) throw new Error(`${String(error)}: ${source}`);
  if (!isNode(program)) throw new Error(`no program: ${source}`);
  return program;
}

/** Parses a fragment: what may stand in a method is one, or what may stand in brackets there. */
function patternOf(text: string): Pattern {
  const statementsIn = (body: string): readonly Node[] => {
    const program = parsed(`class C { async *m() { while (true) { ${body}\n } } }`);
    const loop = childrenOf(program).flatMap(descendants).find(isOf("WhileStatement"))!;
    return (loop["body"] as Node)["body"] as readonly Node[];
  };
  try {
    return { expression: statementsIn(`(${text}\n);`)[0]!["expression"] as Node };
  } catch {
    return { statements: statementsIn(text) };
  }
}

const isOf = (type: string) => (node: Node) => node.type === type;

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

function childrenOf(node: Node): Node[] {
  return Object.entries(node)
    .filter(([key]) => !WRITING.has(key))
    .flatMap(([, value]) => value)
    .filter(isNode);
}

/** The node and all below it. */
function descendants(node: Node): Node[] {
  return [node, ...childrenOf(node).flatMap(descendants)];
}

/** All that has a name, under it and those of what it stands in. */
export function symbolsOf(node: Node, owner = ""): { name: string; node: Node }[] {
  return childrenOf(node).flatMap((child) => {
    const name = nameOf(child);
    if (name === undefined) return symbolsOf(child, owner);
    const path = owner === "" ? name : `${owner}.${name}`;
    return [{ name: path, node: child }, ...symbolsOf(child, path)];
  });
}

function nameOf(node: Node): string | undefined {
  switch (node.type) {
    case "FunctionDeclaration":
    case "ClassDeclaration":
    case "VariableDeclarator":
      return (node["id"] as Node | null)?.["name"] as string | undefined;
    case "ClassMethod":
    case "ClassProperty":
    case "ObjectMethod":
    case "ObjectProperty":
      return (node["key"] as Node)["name"] as string | undefined;
    case "ClassPrivateMethod":
    case "ClassPrivateProperty":
      return `#${((node["key"] as Node)["id"] as Node)["name"]}`;
    default:
      return undefined;
  }
}

/** All places below a node that have the shape. */
function matchesIn(owner: Node, pattern: Pattern, source: string): Match[] {
  const found: Match[] = [];
  const lists =
    "expression" in pattern
      ? descendants(owner).map((node) => [node])
      : descendants(owner).flatMap((node) => listsOf(node));
  const wanted = "expression" in pattern ? [pattern.expression] : pattern.statements;
  for (const nodes of lists) {
    for (let first = 0; first + wanted.length <= nodes.length; first++) {
      const bound = new Map<string, string>();
      const here = nodes.slice(first, first + wanted.length);
      if (!wanted.every((one, i) => matches(one, here[i] as Node, source, bound))) continue;
      const [begin, end] = [here[0] as Node, here.at(-1) as Node];
      found.push({ start: begin.start, end: end.end, bound });
    }
  }
  return found;
}

/** Runs of statements: the lists of a node, and the single one of an `if` or a loop. */
function listsOf(node: Node): Node[][] {
  return ["body", "consequent", "alternate"]
    .map((key) => node[key])
    .filter((value) => Array.isArray(value) || isNode(value))
    .map((value) => [value].flat() as Node[]);
}

/** Compares by meaning, and notes what variables of the pattern stand for. */
function matches(
  pattern: unknown,
  value: unknown,
  source: string,
  bound: Map<string, string>,
): boolean {
  if (Array.isArray(pattern))
    return (
      Array.isArray(value) &&
      pattern.length === value.length &&
      pattern.every((one, i) => matches(one, value[i], source, bound))
    );
  if (!isNode(pattern)) {
    if (typeof pattern !== "object" || !pattern) return (pattern || null) === (value || null);
    return JSON.stringify(pattern) === JSON.stringify(value);
  }
  if (!isNode(value)) return false;
  if (pattern.type === "TSNonNullExpression")
    return matches(pattern["expression"], value, source, bound);
  const name = variableOf(pattern);
  if (name !== undefined) {
    const text = value.type === "Identifier" ? (value["name"] as string) : textOf(value, source);
    if (!bound.has(name)) bound.set(name, text);
    return bound.get(name) === text;
  }
  if (value.type === "TSNonNullExpression")
    return matches(pattern, value["expression"], source, bound);
  if (pattern.type !== value.type) return false;
  const keys = new Set([...Object.keys(pattern), ...Object.keys(value)]);
  return [...keys].every(
    (key) => WRITING.has(key) || matches(pattern[key], value[key], source, bound),
  );
}

/** `$x`, which stands for an expression, and `$x;`, which stands for a statement. */
function variableOf({ type, name, expression }: Node): string | undefined {
  if (type === "ExpressionStatement") return variableOf(expression as Node);
  return type === "Identifier" && (name as string).startsWith("$") ? (name as string) : undefined;
}

const textOf = ({ start, end }: Node, source: string) => source.slice(start, end);

/** Names that a text uses, and neither it, nor the file, nor the platform has. */
function strangers(text: string, program: Node): string[] {
  const pattern = patternOf(text);
  const nodes =
    "expression" in pattern
      ? descendants(pattern.expression)
      : pattern.statements.flatMap(descendants);
  const known = new Set(descendants(program).filter(isName).map(keyOf));
  const own = new Set(
    nodes
      .flatMap((node) =>
        node.type === "VariableDeclarator" ? [node["id"]] : (node["params"] ?? []),
      )
      .filter(isNode)
      .flatMap(descendants)
      .map(keyOf),
  );
  const properties = new Set(nodes.flatMap(namesOfProperties));
  return nodes
    .filter((node) => isName(node) && !properties.has(node))
    .map(keyOf)
    .filter((name) => !known.has(name) && !own.has(name) && !(name in globalThis));
}

/** Names that mean nothing by themselves: `b` of `a.b` and of `{ b: a }`, and that of `#b`. */
function namesOfProperties(node: Node): unknown[] {
  if (node.type === "PrivateName") return [node["id"]];
  if (node["computed"] === true || node["shorthand"] === true) return [];
  const { property, key } = node;
  return [isNode(property) && property.type === "PrivateName" ? undefined : property, key];
}

const isName = ({ type }: Node) => type === "Identifier" || type === "PrivateName";

const keyOf = (node: Node): string =>
  node.type === "PrivateName" ? `#${(node["id"] as Node)["name"]}` : String(node["name"]);

export interface CatalogueBug extends SourceBug {
  /** Test files that see it, or patterns of them; from the root of the repository. */
  readonly tests?: readonly string[];
  /**
   * How runs that can show it differ from those that seeds draw; absent if they need not differ,
   * "no" if no run shows it.
   */
  readonly sim?: Changes["set"] | "no";
  /** A seed that shows it: every build runs it. Without one, only `./dev mutants` plants the bug. */
  readonly seed?: number;
  /** The same of a random cluster of Raft machines (`./dev sim raft`). */
  readonly raftSeed?: number;
}
