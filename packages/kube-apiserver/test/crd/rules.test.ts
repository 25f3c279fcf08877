/** Rules (x-kubernetes-validations): texts as recorded from kube-apiserver 1.36.3, and bounds. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { ApiError, FieldError, Json, Schema } from "@quorate/kube-storage";
import { loadCel } from "../../src/crd/cel/engine.ts";
import { RuleEvaluator } from "../../src/crd/cel/evaluation.ts";
import { CrdWorld } from "../support/crd-world.ts";
import { definition } from "./cases.ts";
import { ruleCases } from "./rule-cases.ts";

const recorded = JSON.parse(
  readFileSync(new URL("recorded-rules.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

function causes(error: ApiError): string[] {
  const all = error.details?.causes ?? [];
  return all.map(({ field, message }) => `${field}: ${message}`).sort();
}

/** Names of types and lists of expected tokens are the parser's own. */
function comparable(text: string): string {
  return text
    .replace(/Syntax error: [^\n]*/, "Syntax error")
    .replace(/applied to '\((selfType|object)[^\n]*/, "");
}

describe("recorded rules", () => {
  let world: CrdWorld;
  before(async () => {
    world = await CrdWorld.open();
  });
  after(() => world.close());

  for (const [i, { name, schema, value, old }] of ruleCases.entries()) {
    test(name, async () => {
      const plural = `rule${String.fromCharCode(97 + (i % 26))}${Math.floor(i / 26) === 0 ? "x" : "y"}`;
      const root = { type: "object", properties: { spec: schema } };
      const attempt = async () => {
        await world.defineSchema(plural, root);
        if (value === undefined) return;
        const { names } = definition(plural, {})["spec"] as unknown as { names: { kind: string } };
        const { kind } = names;
        const objectOf = (spec: Json) => ({
          apiVersion: "recorded.example/v1",
          kind,
          metadata: { name: "v" },
          spec,
        });
        if (old === undefined) {
          await world.create(plural, objectOf(value));
          return;
        }
        const made = await world.create(plural, objectOf(old));
        await world.put(plural, { ...made, spec: value });
      };
      const refused = await attempt().then(() => [], causes);
      assert.deepEqual(refused.map(comparable), recorded[name].map(comparable));
    });
  }
});

async function errorsOf(schema: object, value: Json): Promise<FieldError[]> {
  let pauses = 0;
  const pause = async () => {
    pauses++;
  };
  const evaluator = new RuleEvaluator(schema as Schema, await loadCel(), pause);
  const errors = await evaluator.evaluate(value, undefined);
  assert.ok(pauses <= 200, "pauses are bounded");
  return errors;
}

describe("bounds of rules", () => {
  const numbers = Array.from({ length: 1000 }, (_, i) => i);

  test("an expression stops when its budget is used up, also inside of ||", async () => {
    for (const suffix of ["", " || true"]) {
      const rule = `self.all(a, self.all(b, self.all(c, a + b + c >= 0)))${suffix}`;
      const schema = {
        type: "array",
        items: { type: "integer" },
        "x-kubernetes-validations": [{ rule }, { rule: "false" }],
      };
      const errors = await errorsOf(schema, numbers);
      assert.equal(errors.length, 1);
      assert.match(errors[0].message, /actual cost limit exceeded.*no further validation rules/);
    }
  });

  test("all rules of an object share a budget", async () => {
    const rule = "self.all(a, self.all(b, a + b >= 0 || a < 0))";
    const items = {
      type: "array",
      items: { type: "integer" },
      "x-kubernetes-validations": [{ rule }],
    };
    const value = Array.from({ length: 200 }, () => numbers.slice(0, 140));
    const errors = await errorsOf({ type: "array", items }, value);
    assert.equal(errors.length, 1);
    assert.match(errors[0].message, /running out of cost budget/);
  });

  test("long texts cost as much as they are long", async () => {
    const rule = "self.all(a, self.all(b, a.contains(b)))";
    const schema = {
      type: "array",
      items: { type: "string" },
      "x-kubernetes-validations": [{ rule }],
    };
    const errors = await errorsOf(
      schema,
      Array.from({ length: 100 }, () => "x".repeat(30_000)),
    );
    assert.match(errors[0].message, /cost limit exceeded/);
  });

  test("a catastrophic pattern is harmless", async () => {
    const schema = {
      type: "string",
      "x-kubernetes-validations": [{ rule: "self.matches('^(a+)+$')" }],
    };
    const errors = await errorsOf(schema, `${"a".repeat(50_000)}!`);
    assert.match(errors[0].message, /failed rule/);
  });

  test("many patterns cost their compilation", async () => {
    const schema = {
      type: "array",
      items: { type: "string" },
      "x-kubernetes-validations": [{ rule: "self.all(p, 'x'.matches(p))" }],
    };
    const errors = await errorsOf(
      schema,
      Array.from({ length: 5000 }, (_, i) => `x|y${i}`),
    );
    assert.match(errors[0].message, /cost limit exceeded/);
  });

  test("a deep or huge expression is refused", async () => {
    const deep = `${"(".repeat(300)}true${")".repeat(300)}`;
    const huge = Array.from({ length: 20_000 }, () => "true").join(" && ");
    const sum = `${"1+".repeat(2000)}1 > 0`;
    const chain = `self${".a".repeat(2000)} == 1`;
    const lists = `${"[".repeat(300)}${"]".repeat(300)}.size() > 0`;
    for (const rule of [deep, huge, sum, chain, lists]) {
      const schema = { type: "string", "x-kubernetes-validations": [{ rule, message: "m" }] };
      const errors = await errorsOf(schema, "x");
      assert.match(errors[0]?.message ?? "accepted", /rule compile error/);
    }
  });
});
