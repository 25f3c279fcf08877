/**
 * The steps of a field path, as managedFields write them (structured-merge-diff: fieldpath):
 *
 *     f:name               a field of a map
 *     k:{"name":"web"}     the item of a list with these key fields
 *     v:"text"             the item of a set
 *     i:3                  an index
 *
 * A step is held as this text, in one canonical form, so that equal steps are equal strings.
 */

import { canonicalJson, compareUtf8 } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import { goNumber } from "./go-text.ts";

/** A step in its canonical text. */
export type PathElement = string;
export type Path = readonly PathElement[];

/** @param fields the key fields that the item has */
export function keyElement(fields: Readonly<Record<string, unknown>>): PathElement {
  return `k:${canonicalJson(fields)}`;
}

/** The same for one key field, which is most lists. */
export function singleKeyElement(name: string, value: unknown): PathElement {
  return `k:{${canonicalJson(name)}:${canonicalJson(value)}}`;
}

export function valueElement(value: unknown): PathElement {
  return `v:${canonicalJson(value)}`;
}

/** The field's name of a step "f:…", undefined for others. */
export function fieldNameOf(element: PathElement): string | undefined {
  return element.startsWith("f:") ? element.slice(2) : undefined;
}

/** Steps that were parsed recently. It is cleared when it is full. */
const parsed = new Map<string, PathElement | undefined>();
const MAX_PARSED = 4096;
/** Longer steps are not kept. */
const MAX_PARSED_CHARS = 256;

/**
 * Brings a step into its canonical form.
 * @returns undefined for types that are unknown: they are skipped
 * @throws Error with Go's text for a malformed one
 */
export function parsePathElement(text: string): PathElement | undefined {
  if (text.startsWith("f:")) return text;
  if (parsed.has(text)) return parsed.get(text);
  const element = parseUncached(text);
  if (text.length > MAX_PARSED_CHARS) return element;
  if (parsed.size >= MAX_PARSED) parsed.clear();
  parsed.set(text, element);
  return element;
}

function parseUncached(text: string): PathElement | undefined {
  if (text.length < 2) throw new Error("key must be 2 characters long:");
  if (text[1] !== ":") throw new Error(`missing colon: ${text}`);
  const content = text.slice(2);
  if (text[0] === "v") return valueElement(JSON.parse(content));
  if (text[0] === "k") {
    const fields: unknown = JSON.parse(content);
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      throw new Error(`expected an object: ${text}`);
    }
    return keyElement(fields as Record<string, unknown>);
  }
  if (text[0] !== "i") return undefined;
  if (!/^[+-]?\d+$/.test(content)) {
    throw new Error(`strconv.Atoi: parsing ${goQuote(content)}: invalid syntax`);
  }
  return `i:${Number(content)}`;
}

const RANKS = "fkvi";

/** Sorts steps as managedFields list them, in place. */
export function sortPathElements(elements: PathElement[]): PathElement[] {
  if (elements.every((element) => element.startsWith("f:"))) return elements.sort(compareUtf8);
  const decoded = elements.map((element) => ({
    element,
    rank: RANKS.indexOf(element.charAt(0)),
    content: contentOf(element),
  }));
  decoded.sort((a, b) => {
    if (a.rank !== b.rank) return a.rank - b.rank;
    if (!a.element.startsWith("k")) return compareValues(a.content, b.content);
    return compareFields(a.content as KeyFields, b.content as KeyFields);
  });
  return decoded.map(({ element }) => element);
}

/** Sorted by their names. */
type KeyFields = readonly (readonly [string, unknown])[];

function contentOf(element: PathElement): unknown {
  const content = element.slice(2);
  if (element[0] === "f") return content;
  const value: unknown = JSON.parse(content);
  return element[0] === "k" ? fieldsOf(value as object) : value;
}

function fieldsOf(value: object): KeyFields {
  const fields = Object.entries(value);
  return fields.length < 2 ? fields : fields.sort(([a], [b]) => compareUtf8(a, b));
}

function compareFields(left: KeyFields, right: KeyFields): number {
  for (const [at, [name, value]] of left.entries()) {
    const other = right[at];
    if (other === undefined) break;
    const order = compareUtf8(name, other[0]) || compareValues(value, other[1]);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function rankOf(value: unknown): number {
  if (typeof value === "number") return 0;
  if (typeof value === "string") return 1;
  if (typeof value === "boolean") return 2;
  if (Array.isArray(value)) return 3;
  return value === null ? 5 : 4;
}

function compareValues(a: unknown, b: unknown): number {
  const rank = rankOf(a);
  if (rank !== rankOf(b)) return rank - rankOf(b);
  if (rank === 0 || rank === 2) return Number(a) - Number(b);
  if (rank === 1) return compareUtf8(a as string, b as string);
  if (rank === 3) return compareLists(a as unknown[], b as unknown[]);
  if (rank === 5) return 0;
  return compareFields(fieldsOf(a as object), fieldsOf(b as object));
}

function compareLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const items = compareValues(a[at], b[at]);
    if (items !== 0) return items;
  }
  return a.length - b.length;
}

/** A path as error messages print it: .spec.containers[name="web"].image. */
export function pathText(path: Path): string {
  return path.map(elementText).join("");
}

/** A step as error messages print it. */
export function elementText(element: PathElement): string {
  const content = element.slice(2);
  if (element[0] === "f") return `.${content}`;
  if (element[0] === "i") return `[${content}]`;
  if (element[0] === "v") return `[=${valueText(JSON.parse(content))}]`;
  const fields = Object.entries(JSON.parse(content));
  fields.sort(([a], [b]) => compareUtf8(a, b));
  return `[${fields.map(([name, value]) => `${name}=${valueText(value)}`).join(",")}]`;
}

function valueText(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (typeof value === "number") return goNumber(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(valueText).join(",")}]`;
  return Object.entries(value)
    .map(([name, field]) => `${name}=${valueText(field)}`)
    .join("");
}
