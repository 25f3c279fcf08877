/** Values as text, JSON, hexadecimal and protobuf. Values are latin1, one character a byte. */
import { own } from "./api.js";
import { utf8 } from "./dom.js";

/** Bytes of a value that views show; the rest is left out, and said so. */
const MAX_SHOWN_BYTES = 256 * 1024;
const MAX_HEX_BYTES = 32 * 1024;
/** Fields and depth of a protobuf view. */
const MAX_FIELDS = 5000;
const MAX_DEPTH = 12;
const KUBERNETES = "k8s\0";
const KUBERNETES_ENCRYPTED = "k8s:enc:";
/** A longer value is not decoded by the member. */
const MAX_DECODED_BYTES = 16 * 1024;

/**
 * The views that a value has, the best one first: [name, text of it or a promise of that].
 */
export function viewsOf(value) {
  const cut = value.slice(0, MAX_SHOWN_BYTES);
  const left = value.length - cut.length;
  const note = left > 0 ? `\n… ${left} bytes more` : "";
  const views = [];
  const isKubernetes = value.startsWith(KUBERNETES);
  if ((isKubernetes || value.startsWith(KUBERNETES_ENCRYPTED)) && value.length <= MAX_DECODED_BYTES)
    views.push(["Kubernetes", kubernetes(value)]);
  const text = utf8(cut);
  const json = left === 0 && text !== undefined ? indentedJson(text) : undefined;
  if (json !== undefined) views.push(["JSON", json]);
  if (text !== undefined) views.push(["Text", visible(text) + note]);
  const fields = left === 0 ? protobufText(isKubernetes ? value.slice(4) : value) : undefined;
  if (fields !== undefined) views.push(["Protobuf", fields]);
  views.push(["Hex", hexText(value)]);
  return views;
}

/** The best text of a record's value, for differences; empty where there is no record. */
export async function textOf(record) {
  if (record === undefined) return "";
  const [[, text]] = viewsOf(record.value);
  return text;
}

async function kubernetes(value) {
  const { yaml } = await own("decode", { value: btoa(value) });
  return visible(yaml ?? "# too long to be decoded here");
}

/** Text whose controls and marks of direction are seen. */
function visible(text) {
  return text.replace(
    /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/gu,
    (char) => `\\u{${char.codePointAt(0).toString(16)}}`,
  );
}

/**
 * JSON with indentation: its tokens stay as they are, so that no number is rounded. Undefined for
 * what is no JSON, or no object or list.
 */
export function indentedJson(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  let result = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/g)) {
    if (token === "}" || token === "]") {
      depth--;
      result += /[{[]$/.test(result) ? token : line() + token;
    } else {
      if (/[{[]$/.test(result) || result.endsWith(",")) result += line();
      result += token === ":" ? ": " : visible(token);
      if (token === "{" || token === "[") depth++;
    }
  }
  return result;
}

function hexText(value) {
  const lines = [];
  for (let at = 0; at < Math.min(value.length, MAX_HEX_BYTES); at += 16) {
    const part = value.slice(at, at + 16);
    const bytes = [...part].map((char) => char.charCodeAt(0).toString(16).padStart(2, "0"));
    const text = part.replace(/[^ -~]/g, ".");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${bytes.join(" ").padEnd(47)}  ${text}`);
  }
  if (value.length > MAX_HEX_BYTES) lines.push(`… ${value.length - MAX_HEX_BYTES} bytes more`);
  return lines.join("\n");
}

/** Fields by their numbers, as far as bytes tell; undefined for what is no message. */
export function protobufText(value) {
  const budget = { fields: MAX_FIELDS };
  const lines = messageLines(value, 0, budget);
  return lines === undefined || lines.length === 0 ? undefined : lines.join("\n");
}

function messageLines(bytes, depth, budget) {
  const lines = [];
  const indent = "  ".repeat(depth);
  const cursor = { bytes, at: 0 };
  while (cursor.at < bytes.length) {
    if (budget.fields-- <= 0) return undefined;
    const tag = varint(cursor);
    if (tag === undefined || tag >> 3n === 0n || tag >> 3n > 536_870_911n) return undefined;
    const name = `${indent}${tag >> 3n}: `;
    switch (Number(tag & 7n)) {
      case 0: {
        const number = varint(cursor);
        if (number === undefined) return undefined;
        lines.push(name + number);
        break;
      }
      case 1:
      case 5: {
        const size = (tag & 7n) === 1n ? 8 : 4;
        const part = take(cursor, size);
        if (part === undefined) return undefined;
        lines.push(`${name}0x${[...part].reverse().map(hexByte).join("")}`);
        break;
      }
      case 2: {
        const length = varint(cursor);
        const part = length === undefined ? undefined : take(cursor, Number(length));
        if (part === undefined) return undefined;
        lines.push(...partLines(name, indent, part, depth, budget));
        break;
      }
      default:
        return undefined;
    }
  }
  return lines;
}

/** A part of so many bytes: text, a message, or bytes. */
function partLines(name, indent, part, depth, budget) {
  const text = utf8(part);
  const isText = text !== undefined && !/[^\P{Cc}\n\t]/u.test(text);
  if (isText) return [name + JSON.stringify(text)];
  const inner = depth < MAX_DEPTH ? messageLines(part, depth + 1, budget) : undefined;
  if (inner !== undefined) return [`${name}{`, ...inner, `${indent}}`];
  return [`${name}0x${[...part.slice(0, 64)].map(hexByte).join("")}${part.length > 64 ? "…" : ""}`];
}

const hexByte = (char) => char.charCodeAt(0).toString(16).padStart(2, "0");

function take(cursor, size) {
  if (size > cursor.bytes.length - cursor.at) return undefined;
  const part = cursor.bytes.slice(cursor.at, cursor.at + size);
  cursor.at += size;
  return part;
}

function varint(cursor) {
  let value = 0n;
  for (let shift = 0n; shift < 64n; shift += 7n) {
    if (cursor.at >= cursor.bytes.length) return undefined;
    const byte = BigInt(cursor.bytes.charCodeAt(cursor.at++));
    value |= (byte & 127n) << shift;
    if (byte < 128n) return BigInt.asUintN(64, value);
  }
  return undefined;
}
