/** Random bodies of requests: right ones, and ones with something in them that is not. */
import type { Random } from "@quorate/host";
import {
  fromUtf8,
  type HttpRoute,
  httpRoutes,
  type JsonField,
  type JsonMessage,
} from "@quorate/proto";

const MAX_DEPTH = 4;
const TEXTS: readonly string[] = ["", "a", "root", '\\"', "\\u0000", "\\ud83d\\ude00", "ü€", "<&>"];
const NUMBERS: readonly string[] = [
  "0",
  "-0",
  "1",
  "-1",
  "1e2",
  "1.50e1",
  "1.5",
  "9007199254740993",
  "-9223372036854775808",
  "18446744073709551615",
  "1e999999999",
  "01",
  "+1",
  '"7"',
  '" 7"',
  '"1e3"',
  '"x"',
  "null",
];
/** Bytes that mean something to a parser, and some that mean nothing. */
const SEEDS: Uint8Array = fromUtf8('{}[]":,\\\n\t\r 0-9.eE+tfnu\u0000\u0001é\u{1f600}').slice();

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random.below(from.length)];
}

export function randomRoute(random: Random): HttpRoute {
  return pick(random, httpRoutes());
}

/** A body of a message type; of `broken` in a hundred some bytes are changed. */
export function randomBody(random: Random, type: JsonMessage, broken: number): Uint8Array {
  const body = fromUtf8(object(random, type, 0)).slice();
  return random.below(100) < broken ? mutated(random, body) : body;
}

/** The bytes with some taken out, put in or changed. */
export function mutated(random: Random, bytes: Uint8Array): Uint8Array {
  let now = [...bytes];
  for (let times = 1 + random.below(4); times > 0; times--) {
    const at = random.below(now.length + 1);
    const kind = random.below(5);
    const one = random.below(3) === 0 ? random.below(256) : SEEDS[random.below(SEEDS.length)];
    if (kind === 0) now = now.slice(0, at);
    else if (kind === 1) now.splice(at, 1 + random.below(3));
    else if (kind === 2) now.splice(at, 0, one);
    else if (kind === 3) now.splice(at, 1, one);
    else {
      const nested = pick(random, ["[", '{"a":', " ", '"']).repeat(
        1 + random.below(pick(random, [5, 500, 12_000])),
      );
      now.splice(at, 0, ...fromUtf8(nested));
    }
  }
  return Uint8Array.from(now);
}

/** The bytes in pieces of random size. */
export function cut(random: Random, bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(pick(random, [2, 30, 5000]));
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

function object(random: Random, type: JsonMessage, depth: number): string {
  const parts: string[] = [];
  for (const field of type.fields) {
    if (random.below(2) === 0 || (field.kind === "message" && depth >= MAX_DEPTH)) continue;
    const name = random.below(2) === 0 ? field.name : field.jsonName;
    parts.push(`"${name}":${value(random, field, depth)}`);
  }
  if (random.below(8) === 0) parts.push(`"unknown":${pick(random, ["1", "[{}]", '{"a":[1]}'])}`);
  return `{${parts.join(pick(random, [",", " ,\n "]))}}`;
}

function value(random: Random, field: JsonField, depth: number): string {
  if (!field.repeated) return single(random, field, depth);
  return `[${Array.from({ length: random.below(4) }, () => single(random, field, depth)).join(",")}]`;
}

function single(random: Random, field: JsonField, depth: number): string {
  switch (field.kind) {
    case "bool":
      return pick(random, ["true", "false"]);
    case "string":
      return `"${pick(random, TEXTS)}"`;
    case "bytes":
      return `"${base64(random)}"`;
    case "enum": {
      const [name, number] = pick(random, [...field.enumType!.numbers]);
      return random.below(2) === 0 ? `"${name}"` : String(number);
    }
    case "message":
      return object(random, field.message!, depth + 1);
    default:
      return random.below(3) === 0 ? pick(random, NUMBERS) : String(random.below(1000));
  }
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function base64(random: Random): string {
  const length = 4 * random.below(pick(random, [3, 20, 400]));
  return Array.from({ length }, () => BASE64[random.below(64)]).join("");
}
