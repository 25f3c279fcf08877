/**
 * Random JSON bodies and random encoded messages of any type, from a seed: correct ones, odd ones
 * and broken ones. For comparisons with etcd's own transcoding.
 */
import type { Dice } from "../../../test/support/random.ts";
import type { JsonField, JsonMessage } from "../src/json/schema.ts";
import { concat, fromLatin1, fromUtf8 } from "../src/wire/bytes.ts";
import { Writer } from "../src/wire/writer.ts";

const INTEGERS = [
  0n,
  1n,
  9n,
  10n,
  127n,
  128n,
  9999n,
  10000n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n,
  2n ** 53n + 1n,
  999999999999999n,
  1000000000000000n,
  12345678901234567890n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
  2n ** 64n,
  -1n,
  -(2n ** 31n),
  -(2n ** 31n) - 1n,
  -(2n ** 53n) - 1n,
  -(2n ** 63n),
  -(2n ** 63n) - 1n,
];
const ODD_NUMBERS = [
  "-0",
  "0.0",
  "1.0",
  "1.5",
  "1e3",
  "1E+2",
  "100e-2",
  "100e-3",
  "0.001e3",
  "0e99999999999",
  "1e400",
  "5e-1",
  "123456789012345678901234567890",
  "1e2147483648",
  "12.30e1",
];
const ODD_STRINGS = [
  "1e",
  "1e+",
  "1.",
  "01",
  "+1",
  " 1",
  "1 ",
  "1 2",
  "1,x",
  "1x",
  "0x10",
  "",
  "-",
  "NaN",
  "Infinity",
  "1\u00a0",
  "true",
  "null",
];
const TEXTS = ["", "a", "key", "<b>&\u2028", "tab\t\n\u0001\u007f", "é\ufffd", "𝄞", '"\\/'];
const WORDS = ["null", "true", "false", "{}", "[]", "[null]", '{"a":[1]}', '"x"', "1", "-"];
const BROKEN_ESCAPES = [
  "\\ud800",
  "\\udc00\\ud800",
  "\\ud83d\\ude00",
  "\\ud800\\u0041",
  "\\x",
  "\\u12",
];

/** A JSON body for a message type. @param oddPercent how often a part of it is unusual or wrong */
export function randomBody(choices: Dice, type: JsonMessage, oddPercent: number): Uint8Array {
  const body = fromUtf8(object(choices, type, oddPercent, 4));
  if (!choices.chance(oddPercent)) return body;
  return mutate(choices, body);
}

function space(choices: Dice): string {
  return choices.chance(10) ? choices.pick([" ", "\n", "\t", "\r\n ", "  "]) : "";
}

function object(choices: Dice, type: JsonMessage, odd: number, depth: number): string {
  const members: string[] = [];
  const count = choices.below(Math.min(type.fields.length, 6) + 1);
  for (let i = 0; i < count; i++) {
    const field = choices.pick(type.fields);
    // A second member of a oneof is an error, and so is a second value.
    members.push(member(choices, field, odd, depth));
  }
  if (choices.chance(odd))
    members.push(`"${choices.pick(["unknown", "[x]", "Key", "é"])}":${anything(choices, 3)}`);
  const s = () => space(choices);
  return `${s()}{${s()}${members.join(`${s()},${s()}`)}${s()}}${s()}`;
}

function member(choices: Dice, field: JsonField, odd: number, depth: number): string {
  let name = choices.pick([field.name, field.jsonName]);
  if (choices.chance(odd)) name = escaped(choices, name);
  const s = () => space(choices);
  return `"${name}"${s()}:${s()}${fieldValue(choices, field, odd, depth)}`;
}

function fieldValue(choices: Dice, field: JsonField, odd: number, depth: number): string {
  if (choices.chance(odd)) return anything(choices, 2);
  if (!field.repeated) return value(choices, field, odd, depth);
  const list = Array.from({ length: choices.below(4) }, () => value(choices, field, odd, depth));
  return `[${list.join(",")}]`;
}

function value(choices: Dice, field: JsonField, odd: number, depth: number): string {
  if (choices.chance(odd)) return choices.pick(WORDS);
  switch (field.kind) {
    case "message":
      return depth === 0 ? "{}" : object(choices, field.message!, odd, depth - 1);
    case "bool":
      return choices.pick(["true", "false"]);
    case "string":
      return quoted(choices, choices.pick(TEXTS), odd);
    case "bytes":
      return base64(choices, odd);
    case "enum":
      if (choices.chance(60)) {
        const names = [...field.enumType!.numbers.keys(), ...(choices.chance(odd) ? ["NO"] : [])];
        return quoted(choices, choices.pick(names), odd);
      }
      return number(choices, odd, [0n, 1n, 2n, 3n, 99n, -1n]);
    default:
      return number(choices, odd, odd > 0 ? INTEGERS : inRange(field.kind));
  }
}

/** Integers that fit a field. */
export function inRange(kind: string): bigint[] {
  const [min, max] =
    kind === "int64"
      ? [-(2n ** 63n), 2n ** 63n - 1n]
      : kind === "uint64"
        ? [0n, 2n ** 64n - 1n]
        : kind === "uint32"
          ? [0n, 2n ** 32n - 1n]
          : [-(2n ** 31n), 2n ** 31n - 1n];
  return INTEGERS.filter((n) => n >= min && n <= max);
}

function number(choices: Dice, odd: number, integers: readonly bigint[]): string {
  if (choices.chance(odd)) {
    const text = choices.pick(choices.chance(50) ? ODD_NUMBERS : ODD_STRINGS);
    return choices.chance(70) ? quoted(choices, text, odd) : text;
  }
  const text = String(choices.pick(integers));
  return choices.chance(50) ? `"${text}"` : text;
}

function base64(choices: Dice, odd: number): string {
  const bytes = Buffer.from(choices.bytes(choices.chance(10) ? 400 : 12));
  let text = bytes.toString(choices.pick(["base64", "base64", "base64url"]));
  if (choices.chance(20)) text = text.replace(/=+$/, "");
  if (choices.chance(odd)) {
    const at = choices.below(text.length + 1);
    const extra = choices.pick([
      "=",
      "-",
      "+",
      "_",
      "/",
      "\n",
      "\r\n",
      " ",
      "*",
      "A",
      "é",
      "\n\n\n\n",
    ]);
    text = text.slice(0, at) + extra + text.slice(at);
  }
  return quoted(choices, text, odd);
}

function escaped(choices: Dice, text: string): string {
  const code = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return [...text]
    .map((char) =>
      char.length === 1 && choices.chance(30) ? code(char) : JSON.stringify(char).slice(1, -1),
    )
    .join("");
}

function quoted(choices: Dice, text: string, odd: number): string {
  const inside = choices.chance(odd) ? escaped(choices, text) : JSON.stringify(text).slice(1, -1);
  const broken = choices.chance(odd / 4) ? choices.pick(BROKEN_ESCAPES) : "";
  return `"${inside}${broken}"`;
}

function anything(choices: Dice, depth: number): string {
  const kind = choices.below(depth === 0 ? 4 : 6);
  if (kind === 0) return choices.pick(WORDS);
  if (kind === 1) return quoted(choices, choices.pick(TEXTS), 20);
  if (kind < 4) return choices.pick(ODD_NUMBERS);
  const parts = Array.from({ length: choices.below(4) }, () => anything(choices, depth - 1));
  if (kind === 4) return `[${parts.join(",")}]`;
  return `{${parts.map((part, i) => `"${i}":${part}`).join(",")}}`;
}

/** Changes, removes or adds some bytes. */
export function mutate(choices: Dice, body: Uint8Array): Uint8Array {
  let bytes = body;
  for (let i = choices.below(2); i >= 0; i--) {
    const at = choices.below(bytes.length + 1);
    const extra = choices.chance(70)
      ? fromLatin1(
          choices.pick([
            '"',
            "\\",
            ",",
            ":",
            "{",
            "}",
            "[",
            "]",
            " ",
            "\n",
            "0",
            "e",
            "n",
            "x",
            "-",
          ]),
        )
      : Uint8Array.of(choices.below(256));
    const end = Math.min(bytes.length, at + choices.below(3));
    const parts = [bytes.subarray(0, at), choices.chance(60) ? extra : new Uint8Array(0)];
    bytes = concat([...parts, bytes.subarray(choices.chance(10) ? bytes.length : end)]);
  }
  return bytes;
}

/** A message in protobuf, fields in order. */
export function randomMessage(choices: Dice, type: JsonMessage, depth = 4): Uint8Array {
  const out = new Writer();
  writeMessage(choices, type, depth, out);
  return out.finish();
}

function writeMessage(choices: Dice, type: JsonMessage, depth: number, out: Writer): void {
  const oneofs = new Map<string, JsonField>();
  for (const field of type.fields)
    if (field.oneof !== undefined && (!oneofs.has(field.oneof) || choices.chance(40)))
      oneofs.set(field.oneof, field);
  for (const field of type.fields) {
    if (field.oneof !== undefined && oneofs.get(field.oneof) !== field) continue;
    if (choices.chance(30)) continue;
    const count = field.repeated ? choices.below(4) : 1;
    if (count > 1 && field.kind !== "message" && (field.tag & 7) === 0 && choices.chance(80)) {
      out.uint32(field.tag | 2);
      const open = out.open();
      for (let i = 0; i < count; i++) writeValue(choices, field, depth, out);
      out.close(open);
      continue;
    }
    for (let i = 0; i < count; i++) {
      out.uint32(field.tag);
      writeValue(choices, field, depth, out);
    }
  }
  if (choices.chance(5)) {
    out.uint32((9999 << 3) | 2);
    out.view(choices.bytes(9));
  }
}

function writeValue(choices: Dice, field: JsonField, depth: number, out: Writer): void {
  switch (field.kind) {
    case "message": {
      const open = out.open();
      if (depth > 0) writeMessage(choices, field.message!, depth - 1, out);
      out.close(open);
      break;
    }
    case "bool":
      out.bool(choices.chance(50));
      break;
    case "string":
      out.string(choices.pick(TEXTS));
      break;
    case "bytes":
      out.view(choices.bytes(choices.chance(10) ? 400 : 12));
      break;
    case "enum":
      out.int32(choices.pick([0, 1, 2, 3, 4, 99, -1]));
      break;
    case "uint64":
      out.bigUint64(choices.pick(inRange("uint64")));
      break;
    case "uint32":
      out.checkedUint32(Number(choices.pick(inRange("uint32"))));
      break;
    default:
      out.bigInt64(choices.pick(inRange(field.kind)));
  }
}
