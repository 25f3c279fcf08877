/**
 * All pages: what they point to is there, the commands that they name exist, and each block of
 * commands is run by a test or says why not.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { isRemoved, REMOVED } from "../../scripts/contributed.ts";
import { type Command, commands, isGroup } from "../../scripts/dev/commands.ts";
import { blocksOf } from "./guide.ts";

const root = join(import.meta.dirname, "../..");
const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n");
const tests = execFileSync("git", ["ls-files", "*.test.ts"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n")
  .map((at) => ({ at, text: readFileSync(join(root, at), "utf8") }));
/** Pages whose blocks a test runs. */
const executed = new Set([
  "CONTRIBUTING.md",
  "README.md",
  "docs/guide/kubernetes.md",
  "docs/guide/kubernetes-go.md",
  "docs/guide/kubernetes-others.md",
  "docs/operate/control-plane.md",
  "docs/operate/discovery.md",
  "docs/guide/gateway.md",
  "docs/guide/http.md",
  "docs/guide/in-place.md",
  "docs/operate/install.md",
  "docs/guide/migration.md",
  "docs/guide/move.md",
  "docs/operate/operations.md",
  "docs/operate/operator.md",
  "docs/guide/patroni.md",
  "docs/guide/shadow.md",
  "docs/operate/proxy.md",
  "docs/guide/users-and-roles.md",
  "docs/guide/v2.md",
]);

for (const page of pages) {
  const text = readFileSync(join(root, page), "utf8");
  const prose = text.replace(/^```.*?^```$/gms, "");

  test(`${page}: links lead somewhere`, () => {
    for (const { 1: target } of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path, anchor] = target.split("#") as [string, string | undefined];
      const file = path === "" ? page : join(dirname(page), path);
      if (isRemoved(file)) continue;
      assert.ok(existsSync(join(root, file)), `${target} is not there`);
      if (anchor === undefined) continue;
      const titles = [...readFileSync(join(root, file), "utf8").matchAll(/^#+ (.*)$/gm)].map(
        ({ 1: title }) =>
          title
            .toLowerCase()
            .replace(/[^\w\- ]/g, "")
            .replaceAll(" ", "-"),
      );
      assert.ok(titles.includes(anchor), `${file} has no title for #${anchor}`);
    }
  });

  test(`${page}: the scripts that it names exist`, () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    for (const { 1: name } of text.matchAll(/\bnpm run (?:-s )?([\w:]+)/g))
      assert.ok(Object.hasOwn(scripts, name), `npm run ${name}`);
    for (const { 1: line } of text.matchAll(/(?<![\w/.])\.\/dev (?!completion)([^`\n]*)/g)) {
      let command: Command = commands;
      for (const word of line.split(" ")) {
        if (!isGroup(command)) break;
        if (!Object.hasOwn(command.commands, word)) {
          assert.ok(
            // Which commands a package had that was taken out is not known.
            command.otherwise !== undefined || /^(?:-|[A-Z]+$)/.test(word) || REMOVED.length > 0,
            `./dev ${line}`,
          );
          break;
        }
        command = command.commands[word];
      }
    }
    for (const { 0: path } of text.matchAll(/\bscripts\/[\w/-]+\.(?:sh|ts)\b/g))
      assert.ok(existsSync(join(root, path)), path);
  });

  test(`${page}: the tests that it names exist`, () => {
    for (const { 0: path } of prose.matchAll(/(?<![\w/])(?:packages|test)\/[\w/-]+\.test\.ts\b/g))
      assert.ok(isRemoved(path) || existsSync(join(root, path)), path);
  });

  test(`${page}: its commands are run, or it says why not`, () => {
    const blocks = blocksOf(text);
    if (!executed.has(page)) assert.deepEqual(blocks, [], "nothing runs this page");
  });
}

test("the shelf names each page of docs/, those on security by their own list", () => {
  const linked = ["docs/README.md", "docs/operate/security.md"].flatMap((list) =>
    [...readFileSync(join(root, list), "utf8").matchAll(/\]\(([^)#]+\.md)/g)].map(({ 1: path }) =>
      join(dirname(list), path!),
    ),
  );
  const missing = pages.filter((page) => page.startsWith("docs/") && !linked.includes(page));
  assert.deepEqual(missing, ["docs/README.md"]);
});

for (const page of ["docs/reference/limits.md", "docs/reference/kubernetes-limits.md"]) {
  test(`${page}: a row is one bound`, () => {
    const rows = readFileSync(join(root, page), "utf8")
      .split("\n")
      .filter((line) => /^\| /.test(line));
    assert.ok(rows.length > 100);
    assert.deepEqual(
      rows.filter((row) => row.split("|").slice(1, 4).join().includes(";")),
      [],
    );
  });
}

for (const page of ["docs/evidence/guide-coverage.md", "docs/evidence/etcd-changelog.md"]) {
  test(`${page} names tests that are there`, () => {
    const text = readFileSync(join(root, page), "utf8");
    const named = [...text.matchAll(/`((?:test|packages)\/[\w/.-]+)`/g)].map((it) => it[1]);
    assert.ok(named.length > 20);
    for (const path of named)
      assert.ok(isRemoved(path) || existsSync(join(root, path)), `${path} is not there`);
  });
}

const security = pages.filter((page) => /^docs\/operate\/security(?:\.md$|\/)/.test(page));

/**
 * Tests by the short names of docs/operate/security: PACKAGE/test/NAME, and those below test/
 * alone.
 */
const SHORT =
  /(?<![\w/.-])(?:([a-z][a-z\d-]*)\/test\/([a-z][\w/-]*)|((?:e2e|interop|scripts|deploy|docs|ctl)\/[a-z][\w-]*))(?![\w/.-]*\.\w)/g;

for (const page of security) {
  const text = readFileSync(join(root, page), "utf8").replace(/\]\([^)]*\)/g, "]");

  test(`${page}: the tests that it names in short exist`, () => {
    for (const { 0: name, 1: pkg, 2: ofPackage, 3: ofTop } of text.matchAll(SHORT)) {
      const path = ofTop === undefined ? `packages/${pkg}/test/${ofPackage}` : `test/${ofTop}`;
      const found = [`${path}.test.ts`, path].some((one) => existsSync(join(root, one)));
      assert.ok(found || isRemoved(path), name);
    }
  });

  test(`${page}: the quoted names are those of tests`, () => {
    // A quoted name follows the file of its test in the same paragraph.
    for (const paragraph of text.split("\n\n")) {
      const named = [...paragraph.matchAll(/[\w/-]+\.test\.ts/g)].map(({ 0: path }) => path);
      if (named.length === 0 || paragraph.startsWith("|")) continue;
      const all = named.map((path) =>
        tests.filter(({ at }) => at.endsWith(`/${path}`) || at === path),
      );
      assert.ok(
        all.every((found) => found.length > 0),
        named.join(" "),
      );
      for (const { 1: quoted } of paragraph.matchAll(/"([^"]+)"/g)) {
        const name = quoted.replace(/\s+/g, " ").replace(/(?: \.\.\.|,)$/, "");
        assert.ok(
          all.flat().some(({ text: body }) => body.includes(name)),
          `"${name}"`,
        );
      }
    }
  });
}
