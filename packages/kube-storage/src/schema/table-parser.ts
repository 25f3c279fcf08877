/**
 * The format of the tables of built-in types. A line that begins at its margin names a type; the
 * indented lines below it have the type's fields, in the order in which Go writes them as JSON:
 *
 *     PolicyRule (mapType=atomic)
 *       verbs!=1:[string](list=atomic) nonResourceURLs?=5:[string](list=atomic)
 *     Verbs = [string]                      a list or map that is a protobuf message of its own
 *     Lease and List                        a kind, and the usual list of it: LeaseList
 *
 *     FIELD = NAME MARKS "=" NUMBER ":" TYPE [ "(" FACT, ... ")" ]
 *     NAME    as in JSON; "..." for fields that JSON inlines (a nested message in protobuf)
 *     MARKS   "?" omitted where empty, "??" omitted where the zero value, "!" required
 *     NUMBER  in protobuf; 0 where protobuf has no such field
 *     TYPE    [ "*" ] ( "[" TYPE "]" | "{" TYPE "}" | WORD ) [ "~" GOTYPE ]
 *             a pointer; a list; a map from strings; a scalar or a message. GOTYPE names Go's type
 *             in errors where it is not the obvious one.
 *     FACT    list=atomic|set|map:KEY+KEY  mapType=atomic|granular  patch=STRATEGY[:KEY]
 *             default=JSON  format=TEXT
 *
 * Source: k8s.io/api, apimachinery, apiextensions-apiserver and kubernetes' api/openapi-spec, 1.36.
 */

/** A type as the table writes it. */
export interface TypeExpression {
  readonly pointer: boolean;
  readonly shape: "list" | "map" | "word";
  /** Of lists and maps. */
  readonly of: TypeExpression | undefined;
  /** A scalar's or a message's name; "" for lists and maps. */
  readonly word: string;
  /** "" where Go's type follows from the rest. */
  readonly goType: string;
}

export interface FieldEntry {
  /** "..." for an inlined message. */
  readonly name: string;
  readonly omit: "" | "empty" | "zero";
  readonly required: boolean;
  /** 0 where protobuf has no such field. */
  readonly number: number;
  readonly type: TypeExpression;
  readonly facts: Readonly<Record<string, string>>;
}

export interface TypeEntry {
  readonly name: string;
  readonly facts: Readonly<Record<string, string>>;
  /** Present where the message is a list or a map in JSON. */
  readonly alias: TypeExpression | undefined;
  readonly fields: readonly FieldEntry[];
}

const FIELD = /\s*([^\s=?!]+)(\??\??)(!?)=(\d+):([^\s(]+)(?:\(([^)]*)\))?/gy;

const AND_LIST = " and List";
const listFields = (kind: string): string =>
  `...=0:meta.TypeMeta metadata?=1:meta.ListMeta items!=2:[${kind}]`;

/** Splits a table into the texts of its types, by name. */
export function splitTable(table: string): Map<string, string> {
  const types = new Map<string, string>();
  for (const text of table.trim().split(/\n(?=\S)/)) {
    const name = /^\S+/.exec(text)?.[0] ?? "";
    types.set(name, text.replace(AND_LIST, ""));
    if (text.startsWith(AND_LIST, name.length))
      types.set(`${name}List`, `${name}List\n  ${listFields(name)}`);
  }
  return types;
}

/** Parses the text of one type. Throws SyntaxError for a text that breaks the format. */
export function parseType(text: string): TypeEntry {
  const head = /^(\S+)(?: \(([^)]*)\))?(?: = (\S+))?(?:\n|$)/.exec(text);
  if (head === null) throw new SyntaxError(`no type: ${text}`);
  const body = text.slice(head[0].length);
  const matches = [...body.matchAll(FIELD)];
  const read = matches.reduce((length, [field]) => length + field.length, 0);
  if (body.slice(read).trim() !== "") throw new SyntaxError(`bad fields: ${text}`);
  const fields = matches.map(parseField);
  const alias = head[3] === undefined ? undefined : parseTypeExpression(head[3]);
  return { name: head[1] ?? "", facts: parseFacts(head[2]), alias, fields };
}

function parseField(match: RegExpExecArray): FieldEntry {
  const [, name = "", omit, required, number, type = "", facts] = match;
  return {
    name,
    omit: omit === "" ? "" : omit === "?" ? "empty" : "zero",
    required: required === "!",
    number: Number(number),
    type: parseTypeExpression(type),
    facts: parseFacts(facts),
  };
}

function parseFacts(text: string | undefined): Record<string, string> {
  if (text === undefined) return {};
  const facts = text.split(",").map((fact) => {
    const at = fact.indexOf("=");
    return [fact.slice(0, at).trim(), fact.slice(at + 1)];
  });
  return Object.fromEntries(facts);
}

/** Parses a type such as "*[core.Container]". Throws SyntaxError. */
export function parseTypeExpression(text: string): TypeExpression {
  const pointer = text.startsWith("*");
  const rest = pointer ? text.slice(1) : text;
  const opening = rest[0];
  if (opening === "[" || opening === "{") {
    const end = rest.lastIndexOf(opening === "[" ? "]" : "}");
    const goType = rest.slice(end + 1);
    if (end < 0 || (goType !== "" && !goType.startsWith("~")))
      throw new SyntaxError(`bad type: ${text}`);
    return {
      pointer,
      shape: opening === "[" ? "list" : "map",
      of: parseTypeExpression(rest.slice(1, end)),
      word: "",
      goType: goType.slice(1),
    };
  }
  const [word = "", goType = ""] = rest.split("~");
  if (!/^[\w.]+$/.test(word)) throw new SyntaxError(`bad type: ${text}`);
  return { pointer, shape: "word", of: undefined, word, goType };
}
