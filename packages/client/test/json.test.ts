/** Results as JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, KeyValue, RangeResponse } from "@quorate/proto";
import { getResult, withJson } from "../src/responses.ts";

const kv = { key: fromUtf8("k"), value: Buffer.from([0xff, 0]), lease: 2n ** 63n - 1n };
const record = { ...kv, createRevision: 3, modRevision: 4, version: 2 };

test("a result is JSON: bytes in base64, bigints as texts, and its parts too", () => {
  const header = { clusterId: 1n, memberId: 2n ** 64n - 1n, revision: 9, raftTerm: 2 };
  const bytes = KeyValue.encode(record);
  const result = getResult(RangeResponse.create({ header, kvs: [bytes], count: 1 }));
  const shown = {
    key: "aw==",
    createRevision: 3,
    modRevision: 4,
    version: 2,
    value: "/wA=",
    lease: "9223372036854775807",
  };
  assert.deepEqual(JSON.parse(JSON.stringify(result)), {
    header: { clusterId: "1", memberId: "18446744073709551615", revision: 9, raftTerm: 2 },
    kvs: [shown],
    more: false,
    count: 1,
  });
  assert.deepEqual(JSON.parse(JSON.stringify(result.kvs[0])), shown);
  assert.deepEqual(JSON.parse(JSON.stringify({ all: result.kvs })), { all: [shown] });
  assert.match(JSON.stringify(result.header), /"memberId":"18446744073709551615"/);
});

test("a result has no other property than before", () => {
  const message = withJson({ ID: 1n, keys: [fromUtf8("a")], members: [{ ID: 2n }] });
  assert.deepEqual(Object.keys(message), ["ID", "keys", "members"]);
  assert.deepEqual(structuredClone(message), {
    ID: 1n,
    keys: [fromUtf8("a")],
    members: [{ ID: 2n }],
  });
  assert.equal(JSON.stringify(message), '{"ID":"1","keys":["YQ=="],"members":[{"ID":"2"}]}');
  assert.equal(JSON.stringify(message.members[0]), '{"ID":"2"}');
});
