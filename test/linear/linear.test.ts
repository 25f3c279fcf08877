/**
 * No parser of a text from outside takes more than in proportion to the text's length. Each is
 * called with texts of every class (texts.ts); QUORATE_LINEAR_SHARP=N takes all and N more kinds of
 * each, with heads and tails, and QUORATE_LINEAR_TABLE=1 writes the page of all parsers.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isRemoved } from "../../scripts/contributed.ts";
import { exportedOf, ROOT } from "./exported.ts";
import {
  exactGrowthOf,
  type Growth,
  growthOf,
  isTooMuch,
  type Kind,
  kindsOf,
  type Parser,
} from "./measure.ts";
import { allParsers, type Entry, filesWithTextWork, isLeftOut, LEFT_OUT } from "./parsers.ts";
import { shown } from "./texts.ts";

const SHARP = Number(process.env["QUORATE_LINEAR_SHARP"] ?? 0);
const WRITES_TABLE = process.env["QUORATE_LINEAR_TABLE"] === "1";

/** Of all kinds the one that costs most a KiB; the search ends with the first that is too much. */
async function worstOf(parser: Parser, kinds: readonly Kind[]): Promise<Growth | undefined> {
  let worst: Growth | undefined;
  for (const kind of kinds) {
    const growth = await growthOf(parser, kind);
    if (growth === undefined) continue;
    if (isTooMuch(growth, parser.limitMsPerKib)) return growth;
    if (growth.msPerKib > (worst?.msPerKib ?? 0)) worst = growth;
  }
  return worst !== undefined && WRITES_TABLE ? exactGrowthOf(parser, worst.kind) : worst;
}

/**
 * What the parser with a number gets: every single character, and of the pieces of grammars every
 * third, another third than the parser before it; all of them with QUORATE_LINEAR_SHARP.
 */
function kindsFor(number: number): Kind[] {
  const kinds = kindsOf(SHARP);
  if (SHARP > 0) return kinds;
  return kinds.filter(({ unit }, i) => unit.length === 1 || i % 3 === number % 3);
}

function lineOf(name: string, { kind, bytes, msPerKib, exponent }: Growth): string {
  const text = `${shown(kind.head)} + ${shown(kind.unit)}... + ${shown(kind.tail)}`;
  return (
    `${name}: ${msPerKib.toFixed(2)} ms/KiB at ${bytes} bytes, ` +
    `exponent ${exponent.toFixed(1)}: ${text}`
  );
}

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const folders = readdirSync(join(ROOT, "packages"))
  .flatMap((name) => [`packages/${name}/src`, `packages/${name}/node`])
  .filter((folder) => existsSync(join(ROOT, folder)));

const PAGE = "docs/operate/security/parsers.md";
/** Before the table of the page. */
const PAGE_HEAD = `# Parsers and what their texts cost

Of each parser the text that costs most, the processor time of a KiB of it, and the factor of the
time when the text is eight times as long (8 is linear, 64 is quadratic). A parser whose texts all
cost less than can be measured has no figures. \`./dev attack parsers --table\` writes the page.

| parser | ms/KiB | bytes | factor | text |
|---|---|---|---|---|
`;
// As no link, and in one cell.
const nameOf = ({ file, name }: Entry): string =>
  `${file} ${name}`.replaceAll("|", "\\|").replaceAll("](", "] (");

function rowOf(name: string, growth: Growth | undefined): string {
  if (growth === undefined) return `| ${name} | | | | |`;
  const { kind, bytes, msPerKib, exponent } = growth;
  const text = `${shown(kind.head)} ${shown(kind.unit)}... ${shown(kind.tail)}`;
  const figures = [msPerKib.toFixed(3), String(bytes), (8 ** exponent).toFixed(1)];
  return `| ${name} | ${figures.join(" | ")} | \`${text.replaceAll("|", "\\|")}\` |`;
}

test("every parser's work is in proportion to the text", async () => {
  const rows: string[] = [];
  const bad: string[] = [];
  for (const [number, parser] of (await allParsers()).entries()) {
    const growth = await worstOf(parser, kindsFor(number));
    rows.push(rowOf(nameOf(parser), growth));
    if (growth !== undefined && isTooMuch(growth, parser.limitMsPerKib))
      bad.push(lineOf(nameOf(parser), growth));
  }
  if (WRITES_TABLE) writeFileSync(join(ROOT, PAGE), `${PAGE_HEAD}${rows.join("\n")}\n`);
  assert.deepEqual(bad, []);
});

test("every parser has a row on the page, and every row a parser", async () => {
  const names = new Set((await allParsers()).map(nameOf));
  const rows = read(PAGE).slice(PAGE_HEAD.length).trimEnd().split("\n");
  const listed = new Set(rows.map((row) => /^\| (.*?) (?<!\\)\| /.exec(row)?.[1] ?? row));
  const fix = "./dev attack parsers --table";
  assert.deepEqual(
    [...names].filter((name) => !listed.has(name)),
    [],
    fix,
  );
  assert.deepEqual(
    [...listed].filter((name) => !names.has(name) && !isRemoved(name)),
    [],
    fix,
  );
});

test("every file that works on texts has a parser in the table, or a reason", async () => {
  const covered = new Set((await allParsers()).map(({ file }) => file));
  const missing = filesWithTextWork(read, folders).filter(
    (file) => !covered.has(file) && !isLeftOut(file),
  );
  assert.deepEqual(missing, [], "add an entry to test/linear/parsers.ts");
});

test("a reason is for files that are there", () => {
  for (const name of Object.keys(LEFT_OUT)) assert.ok(existsSync(join(ROOT, name)), name);
});

test("a parser that backtracks, or walks a growing list, is found", async () => {
  const walked = (text: string): number => {
    const seen: string[] = [];
    for (const char of text) if (seen.indexOf(`${char}${seen.length}`) < 0) seen.push(char);
    return seen.length;
  };
  const kind = (unit: string, head = "", tail = ""): Kind => ({ unit, head, tail });
  const planted: [name: string, call: (text: string) => unknown, kind: Kind][] = [
    ["blanks", (text) => text.replace(/[ \t]*,[ \t]*/g, ","), kind(" ", "a", "b")],
    ["slashes", (text) => text.replace(/^\/+|\/+$/g, ""), kind("/", "a", "b")],
    ["digits", (text) => /[\d_]*\d[\d_]*$/.test(text), kind("1", "", "!")],
    ["a growing list", walked, kind("a")],
  ];
  for (const [name, call, one] of planted) {
    const worst = await worstOf({ name, call, maxBytes: 65_536 }, [one]);
    assert.ok(worst !== undefined && isTooMuch(worst), name);
  }
});

test("a linear parser passes, whatever its constant below a millisecond a KiB", async () => {
  const call = (text: string): number => {
    let sum = 0;
    for (let i = 0; i < text.length * 40; i++)
      sum = Math.imul(sum ^ text.charCodeAt(i % text.length), 31);
    return sum;
  };
  const worst = await growthOf({ name: "slow", call, maxBytes: 65_536 }, kindsOf(0)[0]);
  assert.ok(worst === undefined || !isTooMuch(worst), JSON.stringify(worst));
});

test("functions that take texts are found by their signatures", () => {
  const found = exportedOf("packages/kube-storage/src/codec/yaml.ts").map(({ name }) => name);
  assert.ok(found.includes("parseYaml"), String(found));
  const names = exportedOf("packages/kube-storage/src/meta/names.ts");
  assert.deepEqual(names.find(({ name }) => name === "isDns1123Subdomain")?.parameters, ["text"]);
});
