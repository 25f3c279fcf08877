/** The JSON mapping against what etcd's gateway made of the same input, line by line. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { JsonError } from "../src/json/json-error.ts";
import { jsonToWire } from "../src/json/request.ts";
import { wireToJson } from "../src/json/response.ts";
import { JsonSplitter } from "../src/json/splitter.ts";
import { errorChunkJson, statusJson } from "../src/json/status.ts";
import { jsonTypes } from "../src/json/types.ts";
import { EMPTY, fromHex, fromLatin1, toHex, toLatin1, toUtf8 } from "../src/wire/bytes.ts";
import { theirs } from "./reflect.ts";

const FILE = join(import.meta.dirname, "fixtures/gateway-json.tsv");
const lines = readFileSync(FILE, "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));
/** Lines at least, so that a lost fixture is noticed. */
const MIN_LINES = 900;

const text = (quoted: string): Uint8Array => fromLatin1(JSON.parse(quoted));
const quote = (bytes: Uint8Array): string =>
  JSON.stringify(toLatin1(bytes)).replace(
    /[\x7f-\xff]/g,
    (char) => `\\u00${char.charCodeAt(0).toString(16)}`,
  );
const message = (hex: string): Uint8Array => (hex === "-" ? EMPTY : fromHex(hex));

/** Go orders the fields of a message, the decoder keeps the order of the body. */
function ordered(typeName: string, encoded: Uint8Array): string {
  const type = theirs.get(typeName)!;
  return toHex(type.encode(type.decode(encoded)).finish()) || "-";
}

function failure(run: () => string): string {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return `error ${JSON.stringify(error.message)}`;
  }
}

function split(body: Uint8Array): string {
  const splitter = new JsonSplitter(1 << 20);
  for (const byte of body) splitter.push(Uint8Array.of(byte));
  splitter.end();
  const values: string[] = [];
  let error = "";
  try {
    for (let value = splitter.next(); value !== undefined; value = splitter.next())
      values.push(quote(value));
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    error = ` ${JSON.stringify(thrown.message)}`;
  }
  return `[${values.join(" ")}]${error}`;
}

function result(operation: string, typeName: string, input: string): string {
  const type = jsonTypes().get(typeName)!;
  switch (operation) {
    case "req":
      return failure(() => ordered(typeName, jsonToWire(type, text(input))));
    case "message":
    case "chunk":
      return failure(() => quote(wireToJson(type, message(input), operation)));
    case "split":
      return split(text(input));
    default: {
      const [code, quoted] = /^(\d+) (.*)$/.exec(input)!.slice(1);
      const make = operation === "status" ? statusJson : errorChunkJson;
      return quote(make(Number(code), toUtf8(text(quoted))));
    }
  }
}

test("etcd's gateway made the same of each input", () => {
  assert.ok(lines.length >= MIN_LINES);
  const wrong = lines.flatMap((line) => {
    const [operation, typeName, input, expected] = line.split("\t");
    const want = operation === "req" && !expected.startsWith("error") ? expected : undefined;
    const got = result(operation, typeName, input);
    const same = want === undefined ? got === expected : got === ordered(typeName, message(want));
    return same ? [] : [`${operation} ${typeName} ${input}\n  got  ${got}\n  want ${expected}`];
  });
  assert.deepEqual(wrong, []);
});
