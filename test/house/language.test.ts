/** The vocabulary rule and the ratchets find what is planted, and leave clean text alone. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { checkLanguage } from "./language.ts";
import {
  compareFigures,
  fileFigures,
  functionFigures,
  languageFigures,
  placeOf,
} from "./ratchet.ts";
import type { SourceFile } from "./tree.ts";

function file(path: string, text: string): SourceFile {
  return { path, text };
}

describe("language", () => {
  for (const planted of [
    "// The rooms of packages/",
    "const toldMember = 1;",
    "this.#told.clear();",
    "if (wasTold) return;",
    "const TOLD_MS = 5;",
    'throw new Error("nobody answers");',
    "| `--x` | the folder of the log |",
    "/** Gives the revision. */",
    "// it is asked\n  // again",
    "function goOnAlone(): void {}",
    " * the only door",
    "member_twin: 1",
  ]) {
    test(planted, () => {
      const [first, ...others] = checkLanguage([file("packages/raft/src/a.ts", `\n${planted}\n`)]);
      assert.deepEqual(others, []);
      assert.equal(first!.where, "packages/raft/src/a.ts:2");
      assert.match(first!.what, /^"[^"]+": write \S/);
    });
  }
  test("words that only hold a banned one, and particles", () => {
    const text =
      "headroom intel outdoors mushroom\n" +
      "It gives up; forgives; satellite, stellar, retold, bedroomed, twinkle, manew, foldered\n" +
      "asks against\n";
    assert.deepEqual(checkLanguage([file("docs/a.md", text)]), []);
  });
  test("the glossary and the list itself may name the words", () => {
    assert.deepEqual(checkLanguage([file("docs/GLOSSARY.md", "room")]), []);
  });
});

describe("ratchets", () => {
  test("words are counted by package and top directory", () => {
    const files = [
      file("packages/raft/src/a.ts", "told room"),
      file("packages/raft/index.ts", "twin"),
      file("docs/a.md", "told"),
      file("README.md", "told"),
    ];
    assert.deepEqual(languageFigures(files), { docs: [1], "packages/raft": [3], root: [1] });
    assert.equal(placeOf("README.md"), "root");
  });
  test("a long file", () => {
    const files = [file("test/a.ts", "x\n".repeat(401)), file("test/b.ts", "x\n".repeat(400))];
    assert.deepEqual(fileFigures(files), { "test/a.ts": [401] });
  });
  test("long functions, and none for a describe()", (t) => {
    const root = mkdtempSync(join(tmpdir(), "house-"));
    t.after(() => rmSync(root, { recursive: true }));
    const body = (lines: number): string => "  f();\n".repeat(lines);
    const long = `function a() {\n${body(75)}}\nconst b = () => {\n${body(90)}};\n`;
    writeFileSync(join(root, "a.ts"), long);
    writeFileSync(join(root, "b.ts"), `describe("x", () => {\n${body(90)}});\n`);
    writeFileSync(join(root, "c.ts"), `function c() {\n${body(60)}}\n`);
    const figures = functionFigures(root, ["."]);
    assert.deepEqual(Object.keys(figures), ["a.ts"]);
    assert.equal(figures["a.ts"].length, 2);
    assert.ok(figures["a.ts"][0] > figures["a.ts"][1]);
  });
  test("a higher figure, a new one, and a lower one are found; an equal one is not", () => {
    const of = (now: Record<string, number[]>): string[] =>
      compareFigures("functions", now, { "a.ts": [90, 80] }).map(({ what }) => what);
    assert.deepEqual(of({ "a.ts": [90, 80] }), []);
    assert.match(of({ "a.ts": [91, 80] }).join(), /^91 .* at 90$/);
    assert.match(of({ "a.ts": [90, 80, 71] }).join(), /^71 .* at 0$/);
    assert.match(of({ "a.ts": [90, 80], "b.ts": [71] }).join(), /^71 .* at 0$/);
    assert.match(of({ "a.ts": [90] }).join(), /^0 .* at 80; lower it/);
  });
});
