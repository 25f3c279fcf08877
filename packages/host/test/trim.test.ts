import assert from "node:assert/strict";
import { test } from "node:test";
import { listItems, pemBlocks, trimBlanks, trimEndOf } from "../index.ts";
import { growthOf } from "../testing/index.ts";

test("blanks are spaces and tabs, at both ends", () => {
  assert.equal(trimBlanks(" \ta b\t "), "a b");
  assert.equal(trimBlanks(" \t "), "");
  assert.equal(trimBlanks("\xa0"), "\xa0");
});

test("lists keep empty elements", () => {
  assert.deepEqual(listItems(" a ,\tb,, c\t"), ["a", "b", "", "c"]);
  assert.deepEqual(listItems(""), [""]);
});

test("one character at the end", () => {
  assert.equal(trimEndOf("a/b//", "/"), "a/b");
  assert.equal(trimEndOf("//", "/"), "");
});

test("PEM: complete blocks, of a label, with noise around them", () => {
  const block = (label: string, body: string) =>
    `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----`;
  const text = `x ${block("A", "1")}\n-----BEGIN A-----\n${block("B C", "2")} y -----BEGIN A-----`;
  assert.deepEqual(
    pemBlocks(text).map(({ label, body }) => [label, body]),
    [
      ["A", "\n1\n"],
      ["B C", "\n2\n"],
    ],
  );
  assert.deepEqual(
    pemBlocks(text, "A").map((one) => one.text),
    [block("A", "1")],
  );
});

test("the cost grows with the length", () => {
  const texts: readonly ((size: number) => string)[] = [
    (size) => `a${" ".repeat(size)}b`,
    (size) => `a${" ,".repeat(size)}b`,
    (size) => `a${"/".repeat(size)}b`,
    (size) => "-----BEGIN A-----".repeat(size / 16),
    (size) => `${"-----BEGIN A-----".repeat(size / 16)}-----END B-----`,
    (size) => "-----BEGIN A----------END B-----".repeat(size / 32),
  ];
  for (const textOf of texts) {
    const growth = growthOf(
      textOf,
      (text) => [trimBlanks(text), listItems(text), trimEndOf(text, "/"), pemBlocks(text)],
      4000,
    );
    assert.ok(growth < 1.5, `${textOf(32)}: ${growth}`);
  }
});
