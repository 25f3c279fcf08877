/** YAML beside what Kubernetes' converter (sigs.k8s.io/yaml 1.6) makes of the same texts. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { MAX_JSON_DEPTH } from "../../src/codec/limits.ts";
import { parseYaml, writeYaml } from "../../src/codec/yaml.ts";

describe("YAML", () => {
  const values: readonly (readonly [yaml: string, json: unknown])[] = [
    ...["yes", "on", "y", "Y", "True", "TRUE"].map((text) => [text, true] as const),
    ...["no", "off", "n", "Off"].map((text) => [text, false] as const),
    ...["~", "null", "NULL", "", "#c"].map((text) => [text, null] as const),
    ["0644", 420],
    ["0o644", 420],
    ["0x1F", 31],
    ["0b11", 3],
    ["08", 8],
    ["00", 0],
    ["1_000", 1000],
    ["1e3", 1000],
    ["1.0", 1],
    [".5", 0.5],
    ["+1", 1],
    ["1.", 1],
    ["12e03", 12_000],
    ["-0", 0],
    ["1 # c", 1],
    ['!!int "5"', 5],
    ...(["2001-01-01", "2001-12-14T21:59:43Z", "12:30:45", "190:20:30"] as const).map(
      (text) => [text, text] as const,
    ),
    ...(["<<", "=", "1e", "e1", "0x", "0xg", "1e400", "a b"] as const).map(
      (text) => [text, text] as const,
    ),
    ["'y'", "y"],
    ["!!str 5", "5"],
    ["!!binary AAE=", "\0\u0001"],
    ['"\\x41"', "A"],
    ["&x [1]", [1]],
    ["[1,\n2]", [1, 2]],
    ["|\n  text\n  two\n", "text\ntwo\n"],
  ];
  for (const [yaml, json] of values)
    it(`a: ${JSON.stringify(yaml)}`, async () => {
      const { value, duplicates } = await parseYaml(`a: ${yaml}`);
      assert.deepEqual(value, { a: json });
      assert.deepEqual(duplicates, []);
    });

  it("has anchors, merges and several documents, of which the first counts", async () => {
    const text = "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n---\ne: 1\n";
    assert.deepEqual((await parseYaml(text)).value, { a: { b: 1 }, c: { b: 1, d: 2 } });
    assert.equal((await parseYaml("")).value, null);
  });

  it("keeps __proto__ a key like any other", async () => {
    const { value } = await parseYaml("__proto__: {a: 1}");
    assert.equal(JSON.stringify(value), '{"__proto__":{"a":1}}');
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  });

  it("names the first key that occurs twice; the last one counts", async () => {
    assert.deepEqual(await parseYaml("a:\n  b: 1\n  b: 2\n"), {
      value: { a: { b: 2 } },
      duplicates: ['yaml: unmarshal errors:\n  line 3: key "b" already set in map'],
    });
  });

  for (const text of [
    "a: .nan",
    "a: -.inf",
    "a: @a",
    "a: a: b",
    "a:\n\t- b",
    "a: *nope",
    "[a",
    "a: b\n c: d",
  ])
    it(`${JSON.stringify(text)} is refused`, async () => {
      await assert.rejects(parseYaml(text), { name: "YamlSyntaxError" });
    });

  it("cannot multiply its size by aliases", async () => {
    const levels = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"];
    for (let level = 1; level < 8; level++)
      levels.push(
        `a${level}: &a${level} [${Array(10)
          .fill(`*a${level - 1}`)
          .join(",")}]`,
      );
    await assert.rejects(parseYaml(levels.join("\n")), /excessive aliasing/);
  });

  it("limits the depth", async () => {
    const nested = (depth: number): string => `a: ${"[".repeat(depth)}1${"]".repeat(depth)}`;
    await parseYaml(nested(98));
    await assert.rejects(parseYaml(nested(101)), /nesting exceeded/);
    // Aliases go deeper than the text.
    const lines = ["a0: &a0 1"];
    for (let level = 1; level <= MAX_JSON_DEPTH + 1; level++)
      lines.push(`a${level}: &a${level} [*a${level - 1}]`);
    await assert.rejects(parseYaml(lines.join("\n")), /exceeded max depth|excessive aliasing/);
  });
});

it("what is written is the same value for readers of YAML 1.1 and of YAML 1.2", async () => {
  const texts = ["yes", "n", "on", "0644", "0o17", "1e3", "1_000", "0x1f", "12:30:45", "null", "~"];
  const odd = ["2020-01-01", "=", "<<", "a: b", "#c", " x", "x\ny\n", "\u0001", ".inf", "-", ""];
  const value = { texts: [...texts, ...odd], empty: [{}, []], number: 1.5, on: true, none: null };
  const text = await writeYaml(value);
  assert.deepEqual(parse(text), value);
  assert.deepEqual((await parseYaml(text)).value, value);
});
