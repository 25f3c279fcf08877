/**
 * The JSON mapping under random and mutated input: whole and in slices, there and back, beside
 * JSON.parse. A short run by default; `./dev fuzz json` runs longer (QUORATE_FUZZ_MINUTES for
 * each part). A failure names its case: QUORATE_FUZZ_SEED runs that one alone.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Dice } from "../../../test/support/random.ts";
import type { WirePieces } from "../src/json/interface.ts";
import { JsonError } from "../src/json/json-error.ts";
import { jsonToWire, transcodeRequest } from "../src/json/request.ts";
import { transcodeResponse, wireToJson } from "../src/json/response.ts";
import type { JsonMessage } from "../src/json/schema.ts";
import { JsonSplitter } from "../src/json/splitter.ts";
import { jsonTypes } from "../src/json/types.ts";
import { concat, fromLatin1, toLatin1, toUtf8 } from "../src/wire/bytes.ts";
import { WireError } from "../src/wire/error.ts";
import { mutate, randomBody, randomMessage } from "./json-random.ts";
import { SEED, theirs } from "./reflect.ts";

const types = [...jsonTypes().values()];
/** Bodies of the golden file, to be mutated. */
const corpus = readFileSync(join(import.meta.dirname, "fixtures/gateway-json.tsv"), "utf8")
  .split("\n")
  .map((line) => line.split("\t"))
  .filter(([operation]) => operation === "req" || operation === "split")
  .map(([, type, body]) => ({ type: jsonTypes().get(type)!, body: fromLatin1(JSON.parse(body)) }));

function drain(pieces: WirePieces): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let piece = pieces.next(); piece !== undefined; piece = pieces.next()) all.push(piece);
  return all;
}

/** The result, or the text of the JsonError. */
function outcome<T>(run: () => T): T | string {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return error.message;
  }
}

function cut(choices: Dice, bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + choices.below(40);
    parts.push(bytes.subarray(at, end));
    at = end;
  }
  return parts;
}

function inSlices(type: JsonMessage, body: Uint8Array, sliceBytes: number): Uint8Array {
  const transcoding = transcodeRequest(type, body);
  for (;;) {
    const message = transcoding.run(sliceBytes);
    if (message !== undefined) return message;
  }
}

/** The values of a body, then the error's text if there is one. */
function values(chunks: readonly Uint8Array[]): { values: Uint8Array[]; error: string } {
  const splitter = new JsonSplitter(1 << 20);
  const found: Uint8Array[] = [];
  const take = (): void => {
    for (let value = splitter.next(); value !== undefined; value = splitter.next())
      found.push(value);
  };
  const error = outcome(() => {
    for (const chunk of chunks) {
      splitter.push(chunk);
      take();
    }
    splitter.end();
    take();
    return "";
  });
  return { values: found, error };
}

function someBody(choices: Dice): { type: JsonMessage; body: Uint8Array } {
  if (choices.chance(30)) {
    const { type, body } = choices.pick(corpus);
    return { type, body: mutate(choices, body) };
  }
  const type = choices.pick(types);
  return { type, body: randomBody(choices, type, choices.pick([0, 5, 15, 30])) };
}

/** A message to JSON, whole and in pieces, and back. */
function fuzzMessage(choices: Dice): void {
  const type = choices.pick(types);
  const reference = theirs.get(type.typeName)!;
  const normal = (bytes: Uint8Array) => reference.decode(bytes).toJSON();
  const message = randomMessage(choices, type);
  const json = wireToJson(type, message);
  assert.deepEqual(concat(drain(transcodeResponse(type, cut(choices, message)))), json);
  // Defaults on the wire and unknown fields are gone; the second time nothing changes.
  const again = jsonToWire(type, json);
  assert.deepEqual(wireToJson(type, again), json);
  assert.deepEqual(normal(jsonToWire(type, json)), normal(again));
  const chunk = toUtf8(wireToJson(type, message, "chunk"));
  assert.ok(!/[<>&\u2028\u2029]/.test(chunk));
  assert.deepEqual(JSON.parse(chunk), { result: JSON.parse(toUtf8(json)) });
}

/** A message with wrong bytes is a WireError or another message. */
function fuzzBrokenMessage(choices: Dice): void {
  const type = choices.pick(types);
  const message = mutate(choices, randomMessage(choices, type));
  const read = (run: () => Uint8Array): Uint8Array | undefined => {
    try {
      return run();
    } catch (error) {
      assert.ok(error instanceof WireError, String(error));
      return undefined;
    }
  };
  const whole = read(() => wireToJson(type, message));
  const pieces = read(() => concat(drain(transcodeResponse(type, cut(choices, message)))));
  assert.deepEqual(pieces, whole);
  if (whole !== undefined) JSON.parse(toUtf8(whole));
}

/** A body: the same in slices, and broken JSON exactly where JSON.parse finds it broken. */
function fuzzBody(choices: Dice): void {
  const { type, body } = someBody(choices);
  const whole = outcome(() => jsonToWire(type, body));
  assert.deepEqual(
    outcome(() => inSlices(type, body, 1 + choices.below(20))),
    whole,
  );
  const first = values([body]).values[0];
  const isBroken = typeof whole === "string" && !whole.startsWith("proto: ");
  if (isBroken) assert.throws(() => JSON.parse(toLatin1(body)));
  else if (first !== undefined) JSON.parse(toLatin1(first));
  else assert.deepEqual(whole, new Uint8Array(0));
}

/** A stream: the same values however it is cut, each of which JSON.parse takes. */
function fuzzStream(choices: Dice): void {
  const bodies = Array.from({ length: 1 + choices.below(4) }, () => someBody(choices).body);
  const body = concat(bodies);
  const whole = values([body]);
  assert.deepEqual(values(cut(choices, body)), whole);
  for (const value of whole.values) JSON.parse(toLatin1(value));
}

const PARTS: readonly (readonly [name: string, run: (choices: Dice) => void, cases: number])[] = [
  ["messages", fuzzMessage, 1000],
  ["broken messages", fuzzBrokenMessage, 1000],
  ["bodies", fuzzBody, 2000],
  ["streams", fuzzStream, 1000],
];

const minutes = Number(process.env["QUORATE_FUZZ_MINUTES"] ?? 0);
const only = process.env["QUORATE_FUZZ_SEED"];

for (const [name, run, cases] of PARTS) {
  test(name, (t) => {
    const base = only !== undefined ? Number(only) : minutes > 0 ? Date.now() >>> 0 : SEED;
    const untilMs = performance.now() + minutes * 60_000;
    const isLast = (count: number): boolean => {
      if (only !== undefined) return count === 1;
      return minutes > 0 ? performance.now() >= untilMs : count === cases;
    };
    let count = 0;
    for (; !isLast(count); count++) {
      const seed = (base + count) >>> 0;
      try {
        run(new Dice(seed));
      } catch (error) {
        throw new Error(`QUORATE_FUZZ_SEED=${seed} fails`, { cause: error });
      }
    }
    t.diagnostic(`${count} cases from seed ${base}`);
  });
}
