/**
 * Estimated costs of rules, and comprehensions of two variables. The decisions were compared with
 * kube-apiserver 1.36.3: it refuses what is refused here by the same text, and accepts the others.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ApiError, Json } from "@quorate/kube-storage";
import { loadCel } from "../../src/crd/cel/engine.ts";
import { DYN, INT, listOf, mapOf, STRING } from "../../src/crd/cel/lang/types.ts";
import { CrdWorld } from "../support/crd-world.ts";

const text = { type: "string" };
const number = { type: "integer" };
const list = (items: object, more = {}) => ({ type: "array", items, ...more });
const map = (values: object) => ({ type: "object", additionalProperties: values });
const object = (properties: object) => ({ type: "object", properties });
const ruled = (schema: object, rule: string) => ({
  ...schema,
  "x-kubernetes-validations": [{ rule }],
});

const PAIRS = "self.all(x, self.all(y, x == y))";
const REFUSED: readonly (readonly [string, object])[] = [
  ["pairs of a list", ruled(list(number), PAIRS)],
  ["a pattern for each text", ruled(list(text), "self.all(x, x.matches('^a+$'))")],
  ["a rule of each item", list(ruled(object({ n: text }), "self.n.contains('x')"))],
  ["values of a map", ruled(map(text), "self.all(k, self[k].contains('x'))")],
  ["pairs by index", ruled(list(number), "self.all(i, v, self.all(j, w, i == j || v != w))")],
  [
    "names that are unique",
    ruled(list(object({ name: text })), "self.all(x, self.exists_one(y, x.name == y.name))"),
  ],
];

const ACCEPTED: readonly (readonly [string, object])[] = [
  ["a text", ruled(object({ a: text }), "self.a == 'x'")],
  ["pairs of a short list", ruled(list(number, { maxItems: 100 }), PAIRS)],
  ["each number", ruled(list(number), "self.all(x, x > 0)")],
  ["a simple rule of each item", list(ruled(object({ n: number }), "self.n > 1"))],
  ["a comparison of each item", list(ruled(object({ n: text }), "self.n != 'abc'"))],
  ["an immutable text", ruled(text, "self == oldSelf")],
  ["a text among many", ruled(object({ l: list(text) }), "self.l.exists(x, x == 'a')")],
  ["a missing field", ruled(object({ a: list(number) }), "!has(self.a) || self.a.size() < 5")],
  ["two variables", ruled(list(number), "self.all(i, v, v > i)")],
];

describe("estimated costs", () => {
  let world: CrdWorld;
  before(async () => {
    world = await CrdWorld.open();
  });
  after(() => world.close());
  const define = (plural: string, spec: object) =>
    world.defineSchema(plural, object({ spec }) as Json).then(
      () => "",
      (error: ApiError) => error.details?.causes?.[0]?.message ?? error.message,
    );

  for (const [at, [name, schema]] of REFUSED.entries())
    test(`refused: ${name}`, async () => {
      const message = await define(`refused${"abcdefgh"[at]}`, schema);
      assert.match(
        message,
        /^Forbidden: estimated rule cost exceeds budget by factor of more than 100x \(try/,
      );
    });

  for (const [at, [name, schema]] of ACCEPTED.entries())
    test(`accepted: ${name}`, async () => {
      assert.equal(await define(`accepted${"abcdefghij"[at]}`, schema), "");
    });
});

describe("comprehensions of two variables", () => {
  const variables = {
    l: [1n, 2n, 3n],
    m: new Map([
      ["a", 1n],
      ["b", 2n],
    ]),
    d: [5n],
  };
  const outcomeOf = async (expression: string, values: object = variables, limit = 250_000) => {
    const engine = await loadCel();
    const environment = engine.base
      .extend()
      .variable("l", listOf(INT))
      .variable("m", mapOf(STRING, INT))
      .variable("d", DYN);
    const program = engine.compile(expression, "bool", environment);
    return program.evaluate((name) => new Map(Object.entries(values)).get(name), limit);
  };

  for (const expression of [
    "l.all(i, v, v == i + 1)",
    "l.exists(i, v, i == 2 && v == 3)",
    "!l.exists(i, v, v > 3)",
    "l.existsOne(i, v, v > 2)",
    "m.all(k, v, k != '' && v > 0)",
    "l.transformList(i, v, v * i) == [0, 2, 6]",
    "l.transformList(i, v, v > 1, v) == [2, 3]",
    "m.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
    "m.transformMap(k, v, v > 1, v) == {'b': 2}",
    "m.transformMapEntry(k, v, {k + 'x': v}) == {'ax': 1, 'bx': 2}",
    "l.transformMap(i, v, v)[0] == 1",
    "d.all(i, v, v == 5)",
    "l.all(i, v, l.exists(j, w, w == v && i == j))",
    // An error of one element does not count where another decides.
    "l.exists(i, v, 1 / (v - 1) > 0)",
  ])
    test(expression, async () => {
      const outcome = await outcomeOf(expression);
      assert.deepEqual(outcome.type === "value" && outcome.value, true);
    });

  test("what is wrong with one is known before it runs", async () => {
    for (const [expression, expected] of [
      ["l.all(i, v, v)", /expected type 'bool' but found 'int'/],
      ["l.all(i, v, v == 'a')", /no matching overload for '_==_'/],
      ["m.all(k, v, v.startsWith('x'))", /no matching overload for 'startsWith'/],
      ["l.all(i.x, v, true)", /argument must be a simple name/],
    ] as const)
      await assert.rejects(outcomeOf(expression), expected);
  });

  test("errors, keys that occur twice, and the budget end one", async () => {
    const failed = await outcomeOf("l.all(i, v, 1 / (v - 1) >= 0)");
    assert.equal(failed.type, "error");
    const twice = await outcomeOf("l.transformMapEntry(i, v, {'k': v}).size() == 1");
    assert.match(twice.type === "error" ? twice.message : "", /key k already exists/);
    const long = { ...variables, l: Array.from({ length: 2000 }, (_, i) => BigInt(i)) };
    const endless = await outcomeOf("l.all(i, v, l.all(j, w, w >= 0))", long, 10_000);
    assert.equal(endless.type, "exceeded");
  });
});
