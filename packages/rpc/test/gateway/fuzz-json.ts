/**
 * Random JSON through the transcoding: whole and in slices of any size it has one result, the
 * message is one that the codec reads, and its own JSON becomes the same message again.
 */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import {
  concat,
  JsonError,
  JsonLimitError,
  JsonSplitter,
  jsonToWire,
  transcodeRequest,
  transcodeResponse,
  WireError,
  wireToJson,
} from "@quorate/proto";
import { cut, mutated, pick, randomBody, randomRoute } from "./bodies.ts";

/** What came out: bytes, or the text of the error that a client is to see. */
function outcome(run: () => Uint8Array): Uint8Array | string {
  try {
    return run().slice();
  } catch (error) {
    if (error instanceof JsonError || error instanceof JsonLimitError) return error.message;
    throw error;
  }
}

export function fuzzJson(random: Random): void {
  const { request, rpc } = randomRoute(random);
  const body = randomBody(random, request, 50);
  const whole = outcome(() => jsonToWire(request, body));
  const slice = pick(random, [1, 7, 100, 100_000]);
  const inSlices = outcome(() => {
    const transcoding = transcodeRequest(request, body);
    for (;;) {
      const message = transcoding.run(slice);
      if (message !== undefined) return message;
    }
  });
  assert.deepEqual(inSlices, whole);
  if (typeof whole === "string") {
    assert.ok(whole.length > 0 && whole.length < body.length * 2 + 500, whole.slice(0, 300));
    return;
  }
  assertReadable(() => rpc.requestType.decode(whole));
  const json = wireToJson(request, whole).slice();
  assert.deepEqual(
    outcome(() => jsonToWire(request, json)),
    whole,
  );
  JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  const pieces: Uint8Array[] = [];
  const response = transcodeResponse(request, cut(random, whole), "message");
  for (let piece = response.next(); piece !== undefined; piece = response.next())
    pieces.push(piece.slice());
  assert.deepEqual(concat(pieces), json);
  splits(random, json);
}

/** Revisions beyond 2^53 keep their value in the message; a member refuses them, as none is. */
function assertReadable(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof WireError) || !error.message.includes("not a safe integer")) throw error;
  }
}

/** Values one after the other come out of the splitter as they went in, wherever they are cut. */
function splits(random: Random, json: Uint8Array): void {
  const splitter = new JsonSplitter(1 << 20);
  const count = 1 + random.below(4);
  const stream = concat(Array.from({ length: count }, () => json));
  const isBroken = random.below(3) === 0;
  const sent = isBroken ? mutated(random, stream) : stream;
  const values: Uint8Array[] = [];
  const error = outcome(() => {
    for (const piece of cut(random, sent)) {
      splitter.push(piece);
      for (let value = splitter.next(); value !== undefined; value = splitter.next())
        values.push(value.slice());
    }
    splitter.end();
    for (let value = splitter.next(); value !== undefined; value = splitter.next())
      values.push(value.slice());
    return json;
  });
  if (isBroken) return;
  assert.deepEqual([error, values], [json, Array.from({ length: count }, () => json)]);
}
