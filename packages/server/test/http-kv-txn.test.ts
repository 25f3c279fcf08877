/** POST /txn: transactions in plain JSON, malformed ones, and the reader of JSON. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MAX_JSON_VALUES, MAX_PLAIN_DEPTH, parsePlainJson } from "@quorate/http-kv/testing";
import { type KvClient, problemIn, startedKv } from "./support/http-kv.ts";
import type { World } from "./support/world.ts";

let world: World;
let kv: KvClient;

before(async () => {
  ({ world, kv } = await startedKv());
});

after(() => world.stopAll());

test("transactions in plain JSON", async () => {
  const send = async (body: string) => {
    const answer = await kv.ask("POST", "/txn", { body });
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text);
  };
  const text = JSON.stringify;
  const txn = (compare: unknown[], ops: unknown[], otherwise: unknown[] = []) =>
    send(`{"compare":${text(compare)},"then":${text(ops)},"else":${text(otherwise)}}`);
  const created = await txn(
    [{ key: "x/a", exists: false }],
    [
      { put: "x/a", value: "1" },
      { put: "x/b", value: { base64: "/w==" } },
    ],
  );
  assert.deepEqual([created.succeeded, created.results], [true, [{}, {}]]);
  const pair = {
    key: "x/a",
    value: "1",
    create_revision: created.revision,
    mod_revision: created.revision,
    version: 1,
  };
  const failed = await txn(
    [{ key: "x/a", exists: false }],
    [],
    [{ get: "x/a" }, { get: "x/", prefix: true, count: true }],
  );
  assert.equal(failed.succeeded, false);
  assert.deepEqual(failed.results, [
    { kvs: [pair], count: 1, more: false },
    { kvs: [], count: 2, more: false },
  ]);
  const { results } = await send(
    text([
      { put: "x/a", value: "2", previous: true },
      { delete: "x/b", previous: true },
      { get: "x/", prefix: true, keys: true, limit: 1 },
    ]),
  );
  assert.deepEqual(results[0], { previous: pair });
  assert.equal(results[1].deleted, 1);
  assert.deepEqual(results[1].previous[0].value, { base64: "/w==" });
  assert.equal("value" in results[2].kvs[0], false);
  for (const compare of [
    { key: "x/a", value: "2" },
    { key: "x/a", value: { base64: "MQ==" }, is: ">" },
    { key: "x/a", version: 2 },
    { key: "x/a", version: 3, is: "<" },
    { key: "x/a", create_revision: created.revision },
    { key: "x/a", mod_revision: created.revision, is: "!=" },
    { key: "x/a", lease: 0 },
    { key: "x/", prefix: true, exists: true },
  ])
    assert.equal((await txn([compare], [])).succeeded, true, text(compare));
  // A number beyond 2^53 keeps its value.
  const lease = (await kv.ask("PUT", "/kv/x/l?ttl=100")).headers["quorate-lease"];
  assert.equal((await send(`[{"put":"x/m","value":"","lease":${lease}}]`)).succeeded, true);
  assert.equal((await kv.ask("HEAD", "/kv/x/m")).headers["quorate-lease"], lease);
  assert.equal((await txn([], [{ put: "x/m", value: "", lease: "keep" }])).succeeded, true);
  assert.equal((await kv.ask("HEAD", "/kv/x/m")).headers["quorate-lease"], lease);
  assert.deepEqual((await send("[]")).results, []);
});

test("malformed transactions say where", async () => {
  const many = JSON.stringify(Array.from({ length: 10_001 }, () => ({ get: "a" })));
  for (const [body, what] of [
    ["", /a value is missing at character 1/],
    ["{", /a name in quotes is missing at character 2/],
    ['[{"get":"a"}', /"," or "]" is missing/],
    ['{"then":[]} x', /there is more behind the value/],
    ['{"then":[],"then":[]}', /the name "then" is there twice/],
    ['"a"', /the body is not an object/],
    ['{"if":[]}', /member "if", which is not known; there are: compare, then, else/],
    ['{"then":{}}', /"then" is not a list/],
    ["[1]", /then\[0\] is not an object/],
    ["[{}]", /then\[0\] is 0 operations/],
    ['[{"put":"a","get":"b"}]', /then\[0\] is 2 operations/],
    ['[{"put":"a"}]', /then\[0\]\.value is missing; write a text/],
    ['[{"put":"a","value":1}]', /then\[0\]\.value is not what it must be/],
    ['[{"put":"a","value":{"base64":"?"}}]', /then\[0\]\.value is not what it must be/],
    ['[{"put":"a","value":"","limit":1}]', /member "limit", which is not known/],
    ['[{"get":"a","limit":9007199254740993}]', /then\[0\]\.limit is not/],
    ['[{"put":"a","value":"","lease":9223372036854775808}]', /then\[0\]\.lease is not/],
    ['{"compare":[{"key":"a"}]}', /compare\[0\] compares 0 properties/],
    ['{"compare":[{"key":"a","version":1,"is":"=="}]}', /compare\[0\]\.is is not/],
    ['["\\ud800"]', /half of a surrogate pair/],
    ['["\\x"]', /invalid escape/],
    ['["\u0001"]', /control character/],
    [Uint8Array.of(0x5b, 0xff, 0x5d), /not UTF-8/],
    [many, /too many operations/],
    ['[{"put":"a","value":"1"},{"put":"a","value":"2"}]', /duplicate key/],
  ] as const) {
    const { type, detail } = await problemIn(kv, "POST", "/txn", { body });
    assert.equal(type, "bad-body", `${body}`);
    assert.match(detail, what);
  }
  const empty = await problemIn(kv, "POST", "/txn", { body: '[{"get":""}]' });
  assert.equal(empty.type, "bad-key");
});

test("the JSON reader agrees with JSON.parse, within its bounds", () => {
  const plain = (value: unknown): unknown => {
    if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]));
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value === "object" && value !== null)
      return Number((value as { text: string }).text);
    return value;
  };
  const parse = (text: string) => plain(parsePlainJson(new TextEncoder().encode(text)));
  const texts = ["null", " [ ] ", "{}", '"\\"\\\\"', "-0.5e+3", '[1,[2,{"a":[true,false]}]]'];
  texts.push('"\\u00e9\\n\\/"', '{"a":{"b":[]},"":"\\\\"}', "0", '"\\\\\\""', '["é😀"]');
  for (const text of texts) assert.deepEqual(parse(text), JSON.parse(text), text);
  for (const text of [
    "01",
    "+1",
    ".5",
    "1.",
    "[1,]",
    '{"a":1,}',
    "{a:1}",
    "'a'",
    '"\\',
    "tru",
    "NaN",
  ]) {
    assert.throws(() => JSON.parse(text), text);
    assert.throws(() => parse(text), text);
  }
  const deep = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  parse(deep(MAX_PLAIN_DEPTH));
  assert.throws(() => parse(deep(MAX_PLAIN_DEPTH + 1)), /nested deeper/);
  assert.throws(() => parse(deep(1_000_000)), /nested deeper/);
  assert.throws(() => parse(`[${"0,".repeat(MAX_JSON_VALUES)}0]`), /more than/);
});
