/** Hostile definitions and values: deep, huge, odd names, catastrophic patterns. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ApiError, Json, Schema } from "@quorate/kube-storage";
import { MAX_SCHEMA_DEPTH } from "../../src/crd/definition/raw-schema.ts";
import { applyDefaults, dropNulls } from "../../src/crd/schema/defaults.ts";
import { prune } from "../../src/crd/schema/prune.ts";
import { JsonPath, JsonPathError, MAX_VISITED_VALUES } from "../../src/crd/serving/json-path.ts";
import { MAX_VALUE_DEPTH } from "../../src/crd/serving/version-schema.ts";
import {
  loadPatterns,
  MAX_CACHED_PATTERNS,
  MAX_MATCH_WORK,
  MAX_PATTERN_LENGTH,
  PatternError,
} from "../../src/crd/validation/patterns.ts";
import { MAX_PROBLEMS } from "../../src/crd/validation/problem.ts";
import { Validation } from "../../src/crd/validation/validate-value.ts";
import { CrdWorld } from "../support/crd-world.ts";
import { definition } from "./cases.ts";

/** The decoder of built-in kinds may refuse it first. */
const TOO_DEEP = /must not be nested deeper than 128 levels|exceeded max depth/;

const OPEN = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

function nested(depth: number, wrap: (inner: unknown) => object, inner: unknown): unknown {
  let value = inner;
  for (let i = 0; i < depth; i++) value = wrap(value);
  return value;
}

async function refusal(run: () => Promise<unknown>): Promise<ApiError> {
  return await run().then(
    () => assert.fail("it was accepted"),
    (error: ApiError) => error,
  );
}

describe("hostile definitions", () => {
  let world: CrdWorld;
  before(async () => {
    world = await CrdWorld.open();
  });
  after(() => world.close());

  const create = (schema: unknown, more = {}) =>
    world.create(
      "customresourcedefinitions",
      definition("hostile", schema as Json, more),
      "v1",
      "",
    );

  test("a schema that is too deep is refused, also below anyOf", async () => {
    const wraps = [
      (inner: unknown) => ({ type: "object", properties: { a: inner } }),
      (inner: unknown) => ({ type: "object", additionalProperties: inner }),
      (inner: unknown) => ({ type: "array", items: inner }),
    ];
    for (const wrap of wraps) {
      const deep = nested(MAX_SCHEMA_DEPTH + 1, wrap, { type: "string" });
      const error = await refusal(() => create({ type: "object", properties: { spec: deep } }));
      assert.match(error.message, TOO_DEEP);
    }
    const alternatives = nested(200, (inner) => ({ anyOf: [inner] }), {});
    const error = await refusal(() => create({ type: "object", ...(alternatives as object) }));
    assert.match(error.message, TOO_DEEP);
  });

  test("a schema with thousands of faults is refused in bounded time", async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 5000 }, (_, i) => [`field${i}`, { pattern: "[" }]),
    );
    const error = await refusal(() => create({ type: "object", properties }));
    assert.equal(error.httpStatus, 422);
  });

  test("patterns that RE2 has not are refused", async () => {
    for (const pattern of ["(?=a)", "(a)\\1", "x".repeat(MAX_PATTERN_LENGTH + 1)]) {
      const spec = { type: "object", properties: { a: { type: "string", pattern } } };
      const error = await refusal(() => create(spec));
      assert.match(error.message, /must be a valid regular expression, but isn't/);
    }
  });

  test("odd field names are kept apart from JavaScript's", async () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const properties = Object.fromEntries(names.slice(1).map((name) => [name, { type: "string" }]));
    await world.defineSchema("odd", {
      type: "object",
      properties: { spec: { type: "object", properties } },
    });
    const text =
      '{"apiVersion":"recorded.example/v1","kind":"Odd","metadata":{"name":"o"},' +
      '"spec":{"__proto__":{"polluted":1},"constructor":"c","toString":"t","other":1}}';
    const made = await world.create("odd", JSON.parse(text) as object);
    assert.equal(JSON.stringify(made["spec"]), '{"constructor":"c","toString":"t"}');
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  test("a value that is too deep is refused", async () => {
    await world.defineSchema("depths", OPEN);
    const value = nested(MAX_VALUE_DEPTH + 1, (inner) => ({ a: inner }), 1);
    const object = {
      apiVersion: "recorded.example/v1",
      kind: "Depths",
      metadata: { name: "d" },
      spec: value,
    };
    assert.throws(() => world.find("depths")!.decode(object), /nested deeper than 512 levels/);
    assert.throws(() => world.find("depths")!.decode([]), /cannot be handled as a Depths/);
  });

  test("malformed metadata is refused", async () => {
    const decode = (metadata: unknown) =>
      world.find("depths")!.decode({
        apiVersion: "recorded.example/v1",
        kind: "Depths",
        metadata,
      });
    assert.throws(
      () => decode({ labels: { a: 1 } }),
      /cannot unmarshal number into Go struct field/,
    );
    assert.throws(() => decode("x"), /cannot unmarshal string/);
    const { object, strictErrors } = decode({ name: "a", more: 1, labels: null });
    assert.deepEqual(
      [object.metadata, strictErrors],
      [{ name: "a" }, ['unknown field "metadata.more"']],
    );
  });
});

describe("bounds of validation", () => {
  test("patterns run in linear time, and the cache of patterns is bounded", async () => {
    const patterns = await loadPatterns();
    assert.equal(patterns.compile("^(a|a)*$").test(`${"a".repeat(100_000)}!`), false);
    for (let i = 0; i < MAX_CACHED_PATTERNS + 10; i++) patterns.compile(`^p${i}$`);
    assert.ok(patterns.size <= MAX_CACHED_PATTERNS);
    assert.throws(() => patterns.compile("a{1001}"), PatternError);
    const large = patterns.compile("(a|b)*a(a|b){900}$");
    assert.throws(
      () => large.test("ab".repeat(MAX_MATCH_WORK / 1000)),
      /too long for this pattern/,
    );
    assert.deepEqual(patterns.compile("a.").find("ab-ac-ad", 2), ["ab", "ac"]);
  });

  test("the errors of one object are bounded", async () => {
    const schema: Schema = { type: "array", items: { type: "string" } };
    const value = Array.from({ length: 5000 }, (_, i) => i);
    assert.equal(new Validation(undefined, "").run(value, schema, undefined).length, MAX_PROBLEMS);
  });

  test("JSON paths visit a bounded number of values", () => {
    const wide = { a: Array.from({ length: 3 * MAX_VISITED_VALUES }, () => ({ b: 1 })) };
    assert.ok(new JsonPath("..b").find(wide).length <= MAX_VISITED_VALUES);
    assert.ok(new JsonPath(".a[*].b").find(wide).length <= MAX_VISITED_VALUES);
    for (const text of [".a[", ".a[?(@.b]", ".a[1:2:0]", "..["]) {
      assert.throws(() => new JsonPath(text), JsonPathError);
    }
  });

  test("JSON paths read what kubectl's columns have", () => {
    const value = {
      list: [
        { name: "a", n: 1 },
        { name: "b", n: 2 },
      ],
      map: { "x.y": 5, "quo'te": 6 },
    };
    const find = (path: string) => new JsonPath(path).find(value);
    assert.deepEqual(find(".list[0].name"), ["a"]);
    assert.deepEqual(find(".list[-1].name"), ["b"]);
    assert.deepEqual(find(".list[*].n"), [1, 2]);
    assert.deepEqual(find(".list[0:1].n"), [1]);
    assert.deepEqual(find(".list[0,1].n"), [1, 2]);
    assert.deepEqual(find(".map['x.y']"), [5]);
    assert.deepEqual(find(".map.x\\.y"), [5]);
    assert.deepEqual(find('.list[?(@.name=="b")].n'), [2]);
    assert.deepEqual(find(".list[?(@.n>1)].name"), ["b"]);
    assert.deepEqual(find(".list[?(@.gone)].name"), []);
    assert.deepEqual(find(".gone.further"), []);
  });
});

describe("pruning and defaults", () => {
  const schema: Schema = {
    type: "object",
    properties: {
      kept: OPEN as Schema,
      list: {
        type: "array",
        items: { type: "object", properties: { a: { type: "string", default: "d" } } },
      },
      map: { type: "object", additionalProperties: { type: "string", nullable: true } },
      text: { type: "string" },
    },
  };

  test("an object without changes is returned as it is", () => {
    const value = { kept: { any: [{ thing: null }] }, list: [{ a: "x" }], map: { k: "v" } };
    assert.equal(prune<Json>(value, schema), value);
    assert.equal(dropNulls(value, schema), value);
    assert.equal(applyDefaults(value, schema), value);
  });

  test("only what changes is copied", () => {
    const value = { list: [{ a: "x" }, { b: 1 }], map: { k: null }, text: null, other: 1 };
    const unknown: string[] = [];
    const pruned = prune<Json>(value, schema, unknown) as typeof value;
    assert.deepEqual(unknown, ["list[1].b", "other"]);
    assert.equal(pruned.list[0], value.list[0]);
    assert.equal(pruned.map, value.map);
    const read = applyDefaults(dropNulls(pruned as Json, schema), schema);
    assert.deepEqual(read, { list: [{ a: "x" }, { a: "d" }], map: { k: null } });
    assert.deepEqual(value.list[1], { b: 1 });
  });
});
