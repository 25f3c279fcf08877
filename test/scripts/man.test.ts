/**
 * Manual pages: every command, flag and option is in them, and man's own formatter finds nothing to
 * say about them.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { commandNodes, loadProgram } from "@quorate/cli";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { optionDocs } from "@quorate/server";
import { skipWithout } from "../support/executables.ts";

const dir = join(mkdtempSync(join(tmpdir(), "quorate-man-")), "man");
after(() => rmSync(join(dir, ".."), { recursive: true }));

function genMan(...args: string[]): { status: number | null; stderr: string } {
  const script = join(import.meta.dirname, "../../scripts/gen-man.ts");
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
  return { status, stderr };
}

const page = (name: string): string => readFileSync(join(dir, name), "utf8");
/** A word as it stands in a page. */
const inPage = (word: string): string => word.replaceAll("-", "\\-");

test("the pages are written, with every command, flag, option and variable", async () => {
  assert.deepEqual(genMan("--out", dir), { status: 0, stderr: "" });
  assert.deepEqual(readdirSync(dir).sort(), [
    "quorate-proxy.8",
    "quorate.8",
    "quoratectl.1",
    "quorateutl.1",
  ]);
  for (const program of [await loadProgram(quoratectl), quorateutl]) {
    const text = page(`${program.name}.1`);
    for (const { names, flags } of commandNodes(program)) {
      const title =
        names.length === 0
          ? '.SH "GLOBAL OPTIONS"'
          : `.SS "${inPage([program.name, ...names].join(" "))}"`;
      const start = text.indexOf(`${title}\n`);
      assert.ok(start >= 0, title);
      const end = text.slice(start + 1).search(/^\.S[SH] /m);
      const part = end < 0 ? text.slice(start) : text.slice(start, start + 1 + end);
      for (const name of flags.keys()) {
        if (names.length > 0 && (name in program.globals || name === "help")) continue;
        assert.ok(part.includes(`${inPage(`--${name}`)}\\fR`), `${names.join(" ")} --${name}`);
      }
    }
  }
  assert.match(page("quoratectl.1"), /\\fBETCDCTL_DIAL_TIMEOUT\\fR/);
  const options = optionDocs();
  assert.ok(options.length > 80);
  for (const { name, variable } of options) {
    assert.ok(page("quorate.8").includes(`\n\\fB${inPage(`--${name}`)}\\fR`), name);
    assert.ok(page("quorate.8").includes(`\\fB${variable}\\fR`), variable);
  }
});

test("groff has nothing to warn of", {
  skip: skipWithout("groff"),
}, () => {
  for (const name of readdirSync(dir)) {
    const { status, stdout, stderr } = spawnSync(
      "groff",
      ["-ww", "-man", "-Tutf8", join(dir, name)],
      { encoding: "utf8" },
    );
    assert.deepEqual([status, stderr], [0, ""], name);
    assert.ok(stdout.length > 5000, name);
  }
});

test("man shows them", { skip: skipWithout("man") }, () => {
  for (const name of readdirSync(dir)) {
    const { status, stdout, stderr } = spawnSync("man", ["--warnings", "-l", join(dir, name)], {
      encoding: "utf8",
      env: { ...process.env, MANWIDTH: "100", LC_ALL: "C.UTF-8" },
    });
    assert.deepEqual([status, stderr], [0, ""], name);
    assert.match(stdout, new RegExp(`^NAME\\n +${name.split(".")[0]} - `, "m"));
  }
});

test("without a directory it says how it is used", () => {
  for (const args of [["--out"], ["--nosuch", "x"]]) {
    const { status, stderr } = genMan(...args);
    assert.equal(status, 2);
    assert.match(
      stderr,
      /^(Not enough arguments following: out|Unknown argument: nosuch); --help lists the options\n$/,
    );
  }
});
