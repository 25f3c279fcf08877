/**
 * Formats values as Go does: quoted strings, sizes, JSON. Scripts compare etcdctl's output byte by
 * byte.
 */
import { escapeGoJson, fromUtf8 } from "@quorate/proto";

const ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  "\\": 92,
  '"': 34,
};

/**
 * Reads a Go string literal at the start of `text`: double quotes with escapes, or back quotes.
 * Returns its bytes and its length in characters, or undefined if there is none.
 */
export function goUnquote(
  text: string,
): { readonly bytes: Uint8Array; readonly length: number } | undefined {
  if (text.startsWith("`")) {
    const end = text.indexOf("`", 1);
    return end < 0
      ? undefined
      : { bytes: fromUtf8(text.slice(1, end).replaceAll("\r", "")), length: end + 1 };
  }
  if (!text.startsWith('"')) return undefined;
  const bytes: number[] = [];
  for (let at = 1; at < text.length; ) {
    const rest = text.slice(at);
    if (rest[0] === '"') return { bytes: Uint8Array.from(bytes), length: at + 1 };
    if (rest[0] === "\n") return undefined;
    if (rest[0] !== "\\") {
      const char = String.fromCodePoint(rest.codePointAt(0) ?? 0);
      bytes.push(...fromUtf8(char));
      at += char.length;
      continue;
    }
    const numeric =
      /^\\(?:x([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/.exec(rest);
    if (numeric !== null) {
      const [all, hexByte, octalByte, short, long = ""] = numeric;
      if (hexByte !== undefined) bytes.push(Number.parseInt(hexByte, 16));
      else if (octalByte !== undefined) bytes.push(Number.parseInt(octalByte, 8));
      else {
        const code = Number.parseInt(short ?? long, 16);
        if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return undefined;
        bytes.push(...fromUtf8(String.fromCodePoint(code)));
      }
      at += all.length;
      continue;
    }
    const escaped = ESCAPES[rest[1] ?? ""];
    if (escaped === undefined) return undefined;
    bytes.push(escaped);
    at += 2;
  }
  return undefined;
}

/** A size for people in decimal units: "512 B", "20 kB", "2.1 GB". */
export function humanBytes(sizeBytes: number): string {
  if (sizeBytes < 10) return `${sizeBytes} B`;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let power = 0;
  while (power < units.length - 1 && sizeBytes >= 1000 ** (power + 1)) power++;
  const value = Math.floor((sizeBytes / 1000 ** power) * 10 + 0.5) / 10;
  return `${value < 10 ? value.toFixed(1) : String(roundHalfEven(value))} ${units[power]}`;
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** A value for goJson. Bytes become base64; undefined members are left out. */
export type JsonValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/**
 * JSON as Go's encoding/json writes it: no spaces, members in their order, <, > and & escaped.
 */
export function goJson(value: JsonValue): string {
  if (typeof value === "string") return jsonString(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Uint8Array)
    return `"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")}"`;
  if (isList(value)) return `[${value.map(goJson).join(",")}]`;
  const members = Object.entries(value).filter(
    (entry): entry is [string, JsonValue] => entry[1] !== undefined,
  );
  return `{${members.map(([key, member]) => `${jsonString(key)}:${goJson(member)}`).join(",")}}`;
}

function isList(value: object): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function jsonString(text: string): string {
  return escapeGoJson(JSON.stringify(text.toWellFormed()));
}
