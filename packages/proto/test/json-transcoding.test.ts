/** The bounds of the JSON mapping, long values, and the table of paths. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyValue } from "../src/gen/kv.ts";
import { PutRequest, RangeResponse, TxnRequest } from "../src/gen/rpc.ts";
import type { WirePieces } from "../src/json/interface.ts";
import { JsonError, JsonLimitError } from "../src/json/json-error.ts";
import { jsonToWire, transcodeRequest } from "../src/json/request.ts";
import { transcodeResponse, wireToJson } from "../src/json/response.ts";
import { httpRoutes } from "../src/json/routes.ts";
import type { JsonMessage } from "../src/json/schema.ts";
import { JsonSplitter } from "../src/json/splitter.ts";
import { jsonTypes } from "../src/json/types.ts";
import { concat, fromLatin1, fromUtf8, toUtf8 } from "../src/wire/bytes.ts";

const typeOf = (name: string): JsonMessage => jsonTypes().get(`etcdserverpb.${name}`)!;
/** What a piece or a slice may exceed its size by: one field of these tests. */
const MAX_PIECE_BYTES = (16 << 10) + 1024;

function drain(pieces: WirePieces): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let piece = pieces.next(); piece !== undefined; piece = pieces.next()) all.push(piece);
  return all;
}

test("a field that comes twice is a WireError", () => {
  const type = typeOf("RangeResponse");
  const twice = concat([RangeResponse.encode({ count: 1 }), RangeResponse.encode({ count: 1 })]);
  assert.throws(() => wireToJson(type, twice), /RangeResponse.count out of order/);
});

test("a response of 100,000 keys has pieces of bounded size", () => {
  const kvs = Array.from({ length: 100_000 }, (_, i) =>
    KeyValue.encode({ key: fromLatin1(`key-${i}`), value: fromLatin1("v"), modRevision: i }),
  );
  const message = RangeResponse.encode({ kvs, count: kvs.length });
  let at = 0;
  const source: WirePieces = {
    next: () => (at < message.length ? message.subarray(at, (at += 5000)) : undefined),
  };
  const pieces = drain(transcodeResponse(typeOf("RangeResponse"), source));
  assert.ok(pieces.length > 50);
  assert.ok(pieces.every((piece) => piece.length <= MAX_PIECE_BYTES));
  const { kvs: parsed, count } = JSON.parse(toUtf8(concat(pieces)));
  assert.equal(count, "100000");
  assert.equal(parsed.length, 100_000);
  assert.deepEqual(parsed[99_999], {
    key: btoa("key-99999"),
    mod_revision: "99999",
    value: "dg==",
  });
});

test("nesting is bounded", () => {
  const type = typeOf("TxnRequest");
  const levels = 3000;
  const nested = (inside: string) =>
    fromLatin1(`${'{"success":[{"request_txn":'.repeat(levels)}{}${"}]}".repeat(levels)}${inside}`);
  assert.ok(jsonToWire(type, nested("")).length > levels);
  const deep = (levels: number) => `{"x":${"[".repeat(levels)}1${"]".repeat(levels)}}`;
  assert.equal(jsonToWire(type, fromLatin1(deep(9_999))).length, 0);
  const message = "invalid character '[' exceeded max depth";
  assert.throws(() => jsonToWire(type, fromLatin1(deep(10_000))), { message });
  const objects = fromLatin1('{"success":[{"request_txn":'.repeat(4000));
  assert.throws(() => jsonToWire(type, objects), /exceeded max depth/);
});

test("many embedded messages, and long ones, get their lengths", () => {
  const type = typeOf("TxnRequest");
  const value = "A".repeat(400);
  const put = `{"request_put":{"key":"YQ==","value":"${value}"}}`;
  const inner = `{"request_txn":{"success":[{},${put},{}],"failure":[${put}]}}`;
  const json = `{"success":[${Array.from({ length: 500 }, () => inner).join(",")}]}`;
  const message = jsonToWire(type, fromLatin1(json));
  const { success } = TxnRequest.decode(message);
  assert.equal(success.length, 500);
  assert.equal(toUtf8(wireToJson(type, message)), json);
});

test("a long value is decoded in each spelling", () => {
  const type = typeOf("PutRequest");
  const value = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919) >> 4);
  const standard = Buffer.from(value).toString("base64");
  const url = standard.replaceAll("+", "-").replaceAll("/", "_");
  for (const text of [
    standard,
    standard.replace(/=+$/, ""),
    url,
    standard.replaceAll("/", "\\/"),
    `\\u0${standard.charCodeAt(0).toString(16).padStart(3, "0")}${standard.slice(1)}`,
    `${standard}\\n\\r\\n\\n`,
  ]) {
    const message = jsonToWire(type, fromLatin1(`{"value":"${text}"}`));
    assert.deepEqual(PutRequest.decode(message).value, value);
  }
  for (const text of [`${standard}*`, `${url}+___`, `${standard} `, `${standard}\\u00e9`]) {
    assert.throws(() => jsonToWire(type, fromUtf8(`{"value":"${text}"}`)), JsonError);
  }
});

test("a long string keeps its characters", () => {
  const type = typeOf("AuthUserAddRequest");
  const name = "aé\u2028𝄞\t".repeat(400);
  for (const text of [JSON.stringify(name), `"${name.replaceAll("\t", "\\u0009")}"`])
    assert.deepEqual(
      JSON.parse(toUtf8(wireToJson(type, jsonToWire(type, fromUtf8(`{"name":${text}}`))))),
      { name },
    );
  const replaced = `\ufffd${name}`;
  const message = jsonToWire(type, fromUtf8(JSON.stringify({ name: replaced })));
  assert.deepEqual(JSON.parse(toUtf8(wireToJson(type, message))), { name: replaced });
  const broken = concat([
    fromUtf8(`{"name":"${"x".repeat(2000)}`),
    Uint8Array.of(0xff),
    fromUtf8('"}'),
  ]);
  assert.throws(() => jsonToWire(type, broken), /invalid UTF-8 in string/);
});

test("a long string with escapes is decoded in slices, and so is its error", () => {
  const value = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7919) >> 4);
  const base64 = Buffer.from(value).toString("base64");
  const escaped = [...base64].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join("");
  const type = typeOf("PutRequest");
  const sliced = (body: string): { result: Uint8Array | string; count: number } => {
    const transcoding = transcodeRequest(type, fromUtf8(body));
    for (let count = 1; ; count++) {
      try {
        const result = transcoding.run(64 << 10);
        if (result !== undefined) return { result, count };
      } catch (error) {
        assert.ok(error instanceof JsonError);
        return { result: error.message, count };
      }
    }
  };
  for (const text of [
    escaped,
    base64.replaceAll("/", "\\/"),
    base64.replace(/.{76}/g, "$&\\r\\n\\r\\n"),
  ]) {
    const { result, count } = sliced(`{"value":"${text}","key":"QQ=="}`);
    const { key, value: decoded } = PutRequest.decode(result as Uint8Array);
    assert.deepEqual([toUtf8(key), decoded], ["A", value]);
    assert.ok(count >= text.length / (64 << 10), `${count} slices`);
  }
  const refused = [
    [`${escaped}\\x`, /^invalid character 'x' in string escape code$/],
    [`${escaped}\\u00e9`, /invalid value for bytes field value/],
    [`${escaped}\\ud800xxxxxx`, /invalid escape code/],
    [`${"é".repeat(100_000)}`, /invalid value for bytes field value/],
  ] as const;
  for (const [text, message] of refused) {
    const { result, count } = sliced(`{"value":"${text}"}`);
    assert.match(result as string, message);
    assert.ok(count >= text.length / (64 << 10), `${count} slices`);
  }
  assert.match(sliced(`{"value":"${escaped}`).result as string, /unexpected EOF/);
});

test("a number of a million digits is refused, also where it is an integer", () => {
  const type = typeOf("CompactionRequest");
  const one = (zeros: number) => fromLatin1(`{"revision":1.${"0".repeat(zeros)}}`).slice();
  assert.deepEqual([...jsonToWire(type, one(65_534))], [8, 1]);
  assert.throws(() => jsonToWire(type, one(65_535)), /invalid value for int64 field revision: 1.0/);
  const digits = `1.${"0".repeat(500_000)}1${"0".repeat(500_000)}`;
  assert.throws(() => jsonToWire(type, fromLatin1(`{"revision":${digits}}`)), JsonError);
  assert.throws(() => jsonToWire(type, fromLatin1(`{"revision":"${digits}"}`)), JsonError);
});

test("an error quotes a part of a long value", () => {
  const type = typeOf("PutRequest");
  const value = `"*${"é".repeat(5000)}"`;
  const whole = `proto: (line 1:8): invalid value for bytes field key: ${value}`;
  assert.throws(
    () => jsonToWire(type, fromUtf8(`{"key":${value}}`)),
    ({ message }: Error) =>
      message.endsWith("...") && whole.startsWith(message.slice(0, -3)) && message.length < 2200,
  );
});

/** In how many slices of 4 KiB a body is transcoded, or refused. */
function slices(type: JsonMessage, body: string): number {
  const transcoding = transcodeRequest(type, fromUtf8(body));
  for (let count = 1; ; count++) {
    try {
      if (transcoding.run(4096) !== undefined) return count;
    } catch (error) {
      assert.ok(error instanceof JsonError);
      return count;
    }
  }
}

test("slow parts of a body count for more than their bytes", () => {
  const list = (item: string) => `[${`${item},`.repeat(20_000)}0]`;
  const filters = (item: string) =>
    slices(typeOf("WatchCreateRequest"), `{"filters":${list(item)}}`);
  // 80,000 bytes, which a plain reader would take in 20 slices.
  assert.ok(filters("111") >= 50);
  assert.ok(filters("1e0") >= 300);
  const put = (body: string) => slices(typeOf("PutRequest"), body);
  assert.ok(put(`{"unknown":${list("111")}}`) >= 35);
  assert.ok(put(`{"unknown":${list('"a"')}}`) >= 35);
  assert.ok(put(`{"unknown":${list("111")},"key":1}`) >= 75, "the scanner's slices come on top");
  assert.ok(put(`{${'"a":1,'.repeat(10_000)}"b":1}`) >= 50);
});

test("the splitter bounds a value, and fails for good", () => {
  const splitter = new JsonSplitter(10);
  splitter.push(fromLatin1('  {"a":12} {"a":'));
  assert.equal(toUtf8(splitter.next()!), '{"a":12}');
  assert.equal(splitter.next(), undefined);
  assert.equal(splitter.bufferedBytes, 5);
  splitter.push(fromLatin1("123456}"));
  assert.throws(() => splitter.next(), JsonLimitError);
  assert.equal(splitter.bufferedBytes, 0);
  splitter.push(fromLatin1("{}"));
  assert.throws(() => splitter.next(), JsonLimitError);
});

test("the paths of etcd's gateway are known", () => {
  assert.equal(httpRoutes().length, 51);
  const byPath = new Map(httpRoutes().map((route) => [route.path, route]));
  const put = byPath.get("/v3/kv/put")!;
  assert.equal(put.rpc.path, "/etcdserverpb.KV/Put");
  assert.equal(put.request, typeOf("PutRequest"));
  assert.equal(put.response, typeOf("PutResponse"));
  assert.equal(byPath.get("/v3/kv/lease/revoke")!.rpc, byPath.get("/v3/lease/revoke")!.rpc);
  assert.equal(byPath.get("/v3/election/observe")!.rpc.responseStream, true);
});
