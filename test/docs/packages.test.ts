/** The README of each package: it is there, on one screen, and what it names is there. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isRemoved } from "../../scripts/contributed.ts";
import { ROOT } from "../../scripts/dev/commands.ts";

const SECTIONS = ["Entry points", "Data path", "What always holds", "Where to begin"];
/** One screen. */
const MAX_LINES = 46;

const names = readdirSync(join(ROOT, "packages"));

/** Paths that a README names, of the package or of the repository, and that are not there. */
function missingOf(name: string, text: string): string[] {
  const paths =
    /(?<![\w/.-])((?:src|node|client|testing|test|bin|examples|packages|scripts|proto|docs)\/[\w./-]*\w)/g;
  return [...text.matchAll(paths)]
    .map(({ 1: path }) => path!)
    .filter((path) => {
      const places = [join(ROOT, "packages", name, path), join(ROOT, path)];
      return !isRemoved(path) && !places.some((place) => existsSync(place));
    });
}

/** What is wrong with the README of a package. */
function faultsOf(name: string, text: string): string[] {
  const faults: string[] = [];
  if (!text.startsWith(`# ${name}\n\n`)) faults.push("another title");
  const sections = [...text.matchAll(/^## (.*)$/gm)].map(({ 1: title }) => title!);
  if (sections.join() !== SECTIONS.join()) faults.push(`sections: ${sections.join(", ")}`);
  const lines = text.split("\n");
  if (lines.length > MAX_LINES) faults.push(`${lines.length} lines`);
  const path = join(ROOT, "packages", name, "package.json");
  const { exports = {} } = JSON.parse(readFileSync(path, "utf8")) as { exports?: object };
  for (const file of Object.values(exports) as string[])
    if (!text.includes(`\`${file.slice(2)}\``)) faults.push(`${file} is not named`);
  return [...faults, ...missingOf(name, text).map((one) => `${one} is not there`)];
}

for (const name of names) {
  test(`packages/${name} has a README that says where to begin`, () => {
    const text = readFileSync(join(ROOT, "packages", name, "README.md"), "utf8");
    assert.deepEqual(faultsOf(name, text), []);
  });
}

test("a README without a section, an entry point or a file is found", () => {
  const text = readFileSync(join(ROOT, "packages/wal/README.md"), "utf8");
  assert.match(faultsOf("wal", text.replace("## Data path", "## Path")).join(), /sections: /);
  assert.deepEqual(faultsOf("wal", text.replace("`index.ts`", "it")), ["./index.ts is not named"]);
  assert.deepEqual(faultsOf("wal", `${text}src/absent.ts\n`), ["src/absent.ts is not there"]);
  assert.deepEqual(faultsOf("wal", text.replace("# wal", "# log")), ["another title"]);
});
