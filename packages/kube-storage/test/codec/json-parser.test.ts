import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  duplicateFieldsOf,
  JsonParser,
  JsonSyntaxError,
  parseJson,
  statedKind,
} from "../../src/codec/json-parser.ts";
import { MAX_DUPLICATE_FIELDS, MAX_JSON_DEPTH } from "../../src/codec/limits.ts";

describe("the JSON parser", () => {
  it("reads what JSON.parse reads, at once and in steps", () => {
    fc.assert(
      fc.property(fc.json(), fc.boolean(), fc.integer({ min: 1, max: 20 }), (text, wide, chars) => {
        const spaced = wide ? JSON.stringify(JSON.parse(text), null, 3) : text;
        const parser = new JsonParser(spaced);
        while (!parser.step(chars));
        assert.deepEqual(parser.value, JSON.parse(spaced));
        assert.equal(JSON.stringify(parseJson(spaced)), JSON.stringify(JSON.parse(spaced)));
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  it("accepts exactly what JSON.parse accepts", () => {
    const chars = fc.constantFrom(...'{}[]:,"\\0123e.-+tfn u/ab\n\u0001é');
    fc.assert(
      fc.property(fc.array(chars, { maxLength: 12 }), (parts) => {
        const text = parts.join("");
        let expected: unknown = JsonSyntaxError;
        try {
          expected = JSON.parse(text);
        } catch {}
        if (expected === JsonSyntaxError) assert.throws(() => parseJson(text), JsonSyntaxError);
        else assert.deepEqual(parseJson(text), expected);
      }),
      { numRuns: 2000, seed: 2 },
    );
  });

  // As Go 1.26 writes them.
  const errors: readonly (readonly [text: string, error: string])[] = [
    ["", "unexpected end of JSON input"],
    ['{"a"', "unexpected end of JSON input"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ["{'a':1}", "invalid character '\\'' looking for beginning of object key string"],
    ["nul", "invalid character ' ' in literal null (expecting 'l')"],
    ["tru1", "invalid character '1' in literal true (expecting 'e')"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
    ['{"a":"\u0001"}', "invalid character '\\x01' in string literal"],
    ['{"a":01}', "invalid character '1' after object key:value pair"],
    ['{"a":1.}', "invalid character '}' after decimal point in numeric literal"],
    ['{"a":-}', "invalid character '}' in numeric literal"],
    ['{"a":1e}', "invalid character '}' in exponent of numeric literal"],
    ["{} x", "invalid character 'x' after top-level value"],
    ["[1 2]", "invalid character '2' after array element"],
    ['{"a" 1}', "invalid character '1' after object key"],
    ["{é:1}", "invalid character 'Ã' looking for beginning of object key string"],
    ["<html>", "invalid character '<' looking for beginning of value"],
  ];
  for (const [text, message] of errors)
    it(`${JSON.stringify(text)}: ${message}`, () => {
      assert.throws(() => parseJson(text), { name: "JsonSyntaxError", message });
    });

  it("replaces surrogates without a partner, as Go does", () => {
    assert.equal(parseJson('"\\ud800x"'), "\ufffdx");
    assert.equal(parseJson('"\\ud83d\\ude00"'), "😀");
  });

  it("limits the depth", () => {
    const nested = (depth: number): string => `${"[".repeat(depth)}1${"]".repeat(depth)}`;
    parseJson(nested(MAX_JSON_DEPTH));
    assert.throws(() => parseJson(nested(MAX_JSON_DEPTH + 1)), /exceeded max depth/);
  });

  it("keeps __proto__ a field like any other", () => {
    const value = parseJson('{"__proto__":{"a":1}}') as object;
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.equal(JSON.stringify(value), '{"__proto__":{"a":1}}');
  });

  it("finds duplicate fields, up to a limit", () => {
    const value = parseJson('{"a":{"b":1,"b":2},"c":[{"constructor":1},{"d":1,"d":2}],"a2":0}');
    assert.deepEqual(duplicateFieldsOf(value), [
      'duplicate field "a.b"',
      'duplicate field "c[1].d"',
    ]);
    const many = Array.from({ length: MAX_DUPLICATE_FIELDS + 1 }, (_, at) => `"f${at}":1`);
    const found = duplicateFieldsOf(parseJson(`{${[...many, ...many].join(",")}}`));
    assert.equal(found.length, MAX_DUPLICATE_FIELDS);
  });

  it("does about as much in a step as the step says", () => {
    const parser = new JsonParser(
      JSON.stringify(Array.from({ length: 10_000 }, (_, at) => ({ at }))),
    );
    let steps = 1;
    while (!parser.step(1000)) steps++;
    assert.ok(steps > 100, `${steps} steps`);
  });
});

describe("the kind that a body states", () => {
  it("is read before the rest", () => {
    assert.deepEqual(statedKind({ kind: "A", apiVersion: "v1", x: 1 }), {
      kind: "A",
      apiVersion: "v1",
    });
    assert.deepEqual(statedKind(null), { kind: "", apiVersion: "" });
  });

  it("must be a text", () => {
    const message = "json: cannot unmarshal number into Go struct field .kind of type string";
    assert.throws(() => statedKind({ kind: 5, apiVersion: [] }), { message });
    assert.throws(() => statedKind([]), /cannot unmarshal array into Go value of type struct/);
  });
});
