/** Places of planted bugs: by symbol and shape, whatever variables and lines are like. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { edited } from "@quorate/host/testing";
import { placeOf } from "../src/planted/source-edit.ts";

const SOURCE = `
const LIMIT = 3;
export class Log {
  #entries: number[] = [];
  get size() { return this.#entries.length; }
  take(first: number, { last }: { last?: number } = {}): number {
    const end = last! + 1; // the end
    if (first > LIMIT) this.#drop(first);
    if (end > LIMIT) this.#drop(end);
    return first;
  }
  #drop(first: number): void {
    this.#entries.splice(first);
  }
}
`;

function planted(at: string, find: string, put: string, source = SOURCE): string {
  return edited(source, placeOf(source, { at: `log.ts#${at}`, find, put }));
}

const lineWith = (text: string, part: string) =>
  text
    .split("\n")
    .find((line) => line.includes(part))
    ?.trim();

test("an expression is found by its shape, and its variables are put back", () => {
  const bug = ["Log.take", "const $end = $last + 1;", "const $end = $last + 2;"] as const;
  assert.equal(lineWith(planted(...bug), "const end"), "const end = last! + 2; // the end");
  const renamed = SOURCE.replaceAll("end", "stop").replace(" = last! + 1", "\n      = last + 1");
  assert.equal(
    lineWith(planted(...bug, renamed), "const stop"),
    "const stop = last + 2; // the stop",
  );
});

test("a symbol is a member, a function, a constant or an accessor, with what it stands in", () => {
  assert.match(planted("LIMIT", "3", "4"), /LIMIT = 4;/);
  assert.match(planted("Log.size", "this.#entries.length", "\n  0"), /return 0;/);
  assert.match(planted("Log.#entries", "[]", "[1]"), /number\[\] = \[1\];/);
  assert.match(planted("Log.#drop", "this.#entries.splice($first);", ""), /void \{\n {4};\n/);
});

test("a run of statements is found, and a variable stands for a statement", () => {
  const find = "const $end = $sum;\nif ($first > LIMIT) $drop;";
  assert.equal(planted("Log.take", find, "$drop;").match(/this\.#drop\(first\);/g)?.length, 1);
  assert.doesNotMatch(planted("Log.take", find, ""), /const end/);
});

test("a variable stands for the same text everywhere", () => {
  const find = "if ($a > LIMIT) this.#drop($a);";
  assert.throws(() => planted("Log.take", find, ""), /has 2 places of the shape: if \(\$a > LIMIT/);
  assert.throws(() => planted("Log.take", "if ($a > $a) $b;", ""), /has 0 places/);
});

test("a bug that cannot be planted says why", () => {
  assert.throws(() => planted("Log.drop", "1", "2"), /packages\/log\.ts has no Log\.drop$/);
  assert.throws(() => planted("LIMIT", "3", "$x"), /\$x is in no pattern: 3/);
  assert.throws(() => planted("LIMIT", "3", "MAXIMUM"), /knows no MAXIMUM: MAXIMUM/);
  assert.throws(() => planted("Log.size", "0 + $x", "1"), /has 0 places/);
  assert.throws(() => planted("LIMIT", "3", "Math.max(2, this.#most)"), /knows no #most/);
});
