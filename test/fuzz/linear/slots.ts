/**
 * Where a text can stand in a request, and the request that has it there. A slot is a place of a
 * shape: a header, a segment of the path, a parameter, a value or a name in the body, or the shape
 * of the body itself (many elements, many names, nesting).
 */
import protobuf from "protobufjs";
import { stringify } from "yaml";
import { type Place, placed, repeated, UNITS } from "../../linear/texts.ts";
import { nested, protoRoot } from "../messages.ts";
import { HEADERS, type Shape, type Tree } from "./shapes.ts";
import type { Protocol, RawRequest } from "./wire.ts";

type Path = readonly (string | number)[];

export type Slot = {
  readonly shape: Shape;
  /** For reports. */
  readonly label: string;
} & (
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "header name" | "headers" | "method" | "chunks" | "body" | "body end" }
  | { readonly kind: "segment"; readonly at: number }
  | { readonly kind: "parameter"; readonly name: string }
  | { readonly kind: "parameter name" | "parameters" }
  | { readonly kind: "value" | "name" | "many" | "names" | "deep" | "digits"; readonly path: Path }
);

/** What stands in the slot. */
export interface Filling {
  readonly unit: string;
  readonly head: string;
  readonly tail: string;
  readonly place: Place;
  readonly bytes: number;
  /** As it is, where the body's grammar would have it escaped. */
  readonly isRaw: boolean;
}

/** How many texts a slot can have: where the text is the shape of the body, a few. */
export function variantsOf({ kind }: Slot): number {
  return /^(?:digits|deep|many|headers|parameters)$/.test(kind) ? 2 : UNITS.length;
}

/** Every slot of a shape. */
export function slotsOf(shape: Shape): Slot[] {
  const { path, query, headers, body, bodyType } = shape;
  const slots: Slot[] = [];
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  for (const name of shape.heads ? new Set([...HEADERS, ...names]) : names)
    slots.push({ shape, kind: "header", name, label: `header ${name}` });
  if (shape.heads) {
    for (const kind of ["header name", "headers", "method"] as const)
      slots.push({ shape, kind, label: kind });
  }
  const segments = path.slice(1).split("/").length;
  for (let at = 0; at <= segments; at++)
    slots.push({ shape, kind: "segment", at, label: `segment ${at} of the path` });
  for (const name of Object.keys(query))
    slots.push({ shape, kind: "parameter", name, label: `parameter ${name}` });
  for (const kind of ["parameter name", "parameters"] as const)
    slots.push({ shape, kind, label: kind });
  if (bodyType === "none") return slots;
  for (const kind of ["chunks", "body", "body end"] as const)
    slots.push({ shape, kind, label: `${bodyType} ${kind}` });
  const walk = (tree: Tree, at: Path): void => {
    const label = `${bodyType} ${at.join(".")}`;
    const add = (kind: "value" | "name" | "many" | "names" | "deep" | "digits"): void => {
      slots.push({ shape, kind, path: at, label: `${label} ${kind}` });
    };
    if (typeof tree !== "object" || tree === null) {
      add("value");
      if (bodyType !== "grpc" && bodyType !== "protobuf" && bodyType !== "text") {
        add("digits");
        add("deep");
      }
      return;
    }
    if (Array.isArray(tree)) {
      add("many");
      if (tree.length > 0) walk(tree[0], [...at, 0]);
      return;
    }
    if (bodyType !== "grpc" && bodyType !== "protobuf") {
      add("name");
      add("names");
    }
    for (const [name, value] of Object.entries(tree)) walk(value, [...at, name]);
  };
  walk(body, []);
  if (bodyType === "grpc")
    slots.push({ shape, kind: "deep", path: [], label: "grpc nested messages" });
  return slots;
}

const MARK = "@@TEXT@@";
const asUtf8 = (text: string): string => Buffer.from(text, "latin1").toString("utf8");

function at(tree: Tree, path: Path): Tree {
  return path.reduce<Tree>((value, step) => value[step], tree);
}

function withValue(tree: Tree, path: Path, value: Tree): Tree {
  if (path.length === 0) return value;
  const copy = structuredClone(tree);
  at(copy, path.slice(0, -1))[path.at(-1)!] = value;
  return copy;
}

/** An element with other texts in it: what must not occur twice does not. */
function renamed(element: Tree, count: number): Tree {
  if (typeof element === "string") return `${element}${count}`;
  if (typeof element === "number") return count;
  if (Array.isArray(element)) return element.map((one) => renamed(one, count));
  if (typeof element !== "object" || element === null) return element;
  return Object.fromEntries(
    Object.entries(element).map(([name, value]) => [name, renamed(value, count)]),
  );
}

/** The tree of the body with what the slot gets, and the text for MARK. */
function spoiltTree(slot: Slot, filling: Filling): { tree: Tree; text: string } {
  const { body } = slot.shape;
  const { unit, head, tail, place, bytes } = filling;
  const text = head + repeated(unit, bytes) + tail;
  if (!("path" in slot)) return { tree: body, text };
  const { kind, path } = slot;
  const usual = at(body, path);
  if (kind === "name") return { tree: withValue(body, path, { ...usual, [MARK]: "a" }), text };
  if (kind === "digits") return { tree: withValue(body, path, MARK), text: repeated("19", bytes) };
  if (kind === "deep") {
    const open = unit.length % 2 === 0 ? "[" : '{"a":';
    const depth = Math.floor(bytes / (2 * open.length));
    const isClosed = tail === "";
    const end = isClosed ? (open === "[" ? "]" : "1}").repeat(depth) : "";
    return { tree: withValue(body, path, MARK), text: open.repeat(depth) + end };
  }
  if (kind === "many") {
    const element = usual[0] ?? "a";
    const count = Math.max(1, Math.floor(bytes / (JSON.stringify(element).length + 6)));
    const isSame = head === "";
    const elements = Array.from({ length: count }, (_, i) =>
      isSame ? element : renamed(element, i),
    );
    return { tree: withValue(body, path, elements), text: "" };
  }
  if (kind === "names") {
    const value = Object.values(usual)[0] ?? "a";
    const count = Math.max(1, Math.floor(bytes / (JSON.stringify(value).length + 10)));
    const many = Object.fromEntries(
      Array.from({ length: count }, (_, i) => [`${unit}${i}`, value]),
    );
    return { tree: withValue(body, path, { ...usual, ...many }), text: "" };
  }
  const whole = typeof usual === "string" ? placed(usual, text, place) : text;
  return { tree: withValue(body, path, MARK), text: whole };
}

const WIRE_BYTES = 2;

/** A message whose fields have what the tree has; texts are put in as they are. */
function protobufOf(type: protobuf.Type, tree: Tree, text: string): Buffer {
  const parts: Buffer[] = [];
  const number = (value: number): number[] => {
    const bytes: number[] = [];
    let left = value;
    for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
    return [...bytes, left];
  };
  for (const field of type.fieldsArray) {
    field.resolve();
    const value = tree?.[field.name];
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) {
      let content: Buffer;
      if (field.resolvedType instanceof protobuf.Type)
        content = protobufOf(field.resolvedType, one === MARK ? {} : one, text);
      else if (one === MARK) content = Buffer.from(text, "latin1");
      else if (typeof one === "string") content = Buffer.from(one);
      else {
        if (Number(one) !== 0)
          parts.push(Buffer.from([...number(field.id << 3), ...number(Number(one))]));
        continue;
      }
      parts.push(
        Buffer.from([...number((field.id << 3) | WIRE_BYTES), ...number(content.length)]),
        content,
      );
    }
  }
  return Buffer.concat(parts);
}

function grpcFrame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const FORM_SAFE = /[^A-Za-z0-9_.~-]/g;
const escaped = (text: string): string =>
  text.replace(FORM_SAFE, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`);

function bodyOf(slot: Slot, filling: Filling): Buffer {
  const { shape, kind } = slot;
  const { bodyType, typeName = "" } = shape;
  if (bodyType === "none") return Buffer.alloc(0);
  const { tree, text } = spoiltTree(slot, filling);
  const isText = kind === "body" || kind === "body end";
  if (kind === "body") {
    const bytes = Buffer.from(text, "latin1");
    return bodyType === "grpc" ? grpcFrame(bytes) : bytes;
  }
  if (bodyType === "grpc" || bodyType === "protobuf") {
    let message =
      kind === "deep"
        ? Buffer.from(nested(typeName, Math.floor(filling.bytes / 6)))
        : protobufOf(protoRoot.lookupType(typeName), tree, text);
    if (isText) message = Buffer.concat([message, Buffer.from(text, "latin1")]);
    return bodyType === "grpc" ? grpcFrame(message) : message;
  }
  const isNoString = kind === "digits" || kind === "deep" || filling.isRaw;
  let written: string;
  if (bodyType === "text") written = String(tree).replace(MARK, () => asUtf8(text));
  else if (bodyType === "form") {
    written = Object.entries(tree as Record<string, string>)
      .map(
        ([name, value]) =>
          `${escapedUnless(name, text, filling)}=${escapedUnless(value, text, filling)}`,
      )
      .join("&");
    if (isText) written += text;
    return Buffer.from(written, "latin1");
  } else if (bodyType === "yaml") {
    written = stringify(tree, { lineWidth: 0 });
    const quoted = isNoString ? asUtf8(text) : JSON.stringify(asUtf8(text));
    written = written.replace(/"?@@TEXT@@"?/, () => quoted);
  } else {
    written = JSON.stringify(tree);
    const quoted = isNoString ? asUtf8(text) : JSON.stringify(asUtf8(text));
    written = written.replace(`"${MARK}"`, () => quoted);
  }
  if (isText) written += asUtf8(text);
  return Buffer.from(written);
}

function escapedUnless(value: string, text: string, { isRaw }: Filling): string {
  if (value !== MARK) return escaped(String(value));
  return isRaw ? text : escaped(text);
}

/** A request target may have no blanks; then the text stands there by escapes. */
function inTarget(text: string, isRaw: boolean): string {
  const isSafe = /^[\x21-\x7e\x80-\xff]*$/.test(text) && !/[?#]/.test(text);
  return isRaw || isSafe ? text : escaped(text);
}

/** The request with the filling in the slot. */
export function requestOf(slot: Slot, filling: Filling, protocol: Protocol): RawRequest {
  const { shape, kind } = slot;
  const { unit, head, tail, place, bytes, isRaw } = filling;
  const text = head + repeated(unit, bytes) + tail;
  const headers: [string, string][] = [["host", "127.0.0.1"]];
  for (const [name, value] of Object.entries(shape.headers))
    headers.push([name.toLowerCase(), value]);
  // Without its own line end, which would end the header.
  const inHeader = isRaw ? text : text.replace(/[\r\n\0]/g, " ");
  if (kind === "header") {
    const present = headers.find(([name]) => name === slot.name);
    const value = placed(present?.[1] ?? "a", inHeader, place);
    if (present === undefined) headers.push([slot.name, value]);
    else present[1] = value;
  } else if (kind === "header name") headers.push([inHeader.toLowerCase(), "a"]);
  else if (kind === "headers") {
    const name = head === "" ? "x-a" : "";
    for (let i = 0; i < bytes / (unit.length + 12); i++)
      headers.push([name === "" ? `x-a${i}` : name, unit]);
  }
  const segments = shape.path.slice(1).split("/");
  if (kind === "segment")
    segments[slot.at] = placed(segments[slot.at] ?? "", inTarget(text, isRaw), place);
  const query = Object.entries(shape.query).map(([name, value]) => {
    const isIt = kind === "parameter" && slot.name === name;
    return `${name}=${isIt ? inTarget(placed(value, text, place), isRaw) : escaped(value)}`;
  });
  if (kind === "parameter name") query.push(`${inTarget(text, isRaw)}=a`);
  if (kind === "parameters") {
    const count = Math.floor(bytes / 8);
    const name = head === "" ? "" : "p";
    const known = Object.keys(shape.query)[0] ?? "a";
    for (let i = 0; i < count; i++) query.push(`${name === "" ? known : `${name}${i}`}=${i}`);
  }
  const search = query.length === 0 ? "" : `?${query.join("&")}`;
  const method = kind === "method" ? placed(shape.method, inHeader, place) : shape.method;
  let body = bodyOf(slot, filling);
  if (kind === "chunks" && protocol === "http/1.1") {
    body = Buffer.concat([chunked(body, filling), Buffer.from("0\r\n\r\n")]);
    headers.push(["transfer-encoding", "chunked"]);
  } else if (body.length > 0 && protocol === "http/1.1") {
    if (!headers.some(([name]) => name === "content-length" || name === "transfer-encoding"))
      headers.push(["content-length", String(body.length)]);
  }
  return { method, path: `/${segments.join("/")}${search}`, headers, body };
}

/** Small chunks, or one with an extension. */
function chunked(body: Buffer, { head, unit, bytes, tail }: Filling): Buffer {
  const whole = body.length > 0 ? body : Buffer.from("a");
  if (head !== "") {
    const extension = `;${repeated(unit, bytes).replace(/[\r\n]/g, " ")}${tail}`;
    const line = `${whole.length.toString(16)}${extension}\r\n`;
    return Buffer.concat([Buffer.from(line, "latin1"), whole, Buffer.from("\r\n")]);
  }
  const one = `1\r\n${String.fromCharCode(whole[0])}\r\n`;
  return Buffer.from(one.repeat(Math.floor(bytes / one.length)), "latin1");
}

/** The bytes that are sent, about. */
export function sizeOf({ method, path, headers, body }: RawRequest): number {
  const inHead = headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  return method.length + path.length + inHead + body.length;
}
