/** The scripts' --help in a clone where nothing is installed yet: at once, and without npm. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { scratchDirectory } from "../support/scratch.ts";

const scripts = join(import.meta.dirname, "../../scripts");
const clone = scratchDirectory("quorate-script-help-");
const npmWasCalled = join(clone, "npm-was-called");
mkdirSync(join(clone, "scripts"));
mkdirSync(join(clone, "bin"));
writeFileSync(join(clone, "bin/npm"), `#!/bin/sh\ntouch ${npmWasCalled}\nexit 1\n`, {
  mode: 0o755,
});
const names = readdirSync(scripts).filter((name) => name.endsWith(".sh"));
for (const name of names) copyFileSync(join(scripts, name), join(clone, "scripts", name));
const installing = names.filter(
  (name) =>
    name !== "install.sh" && readFileSync(join(scripts, name), "utf8").includes("install.sh"),
);

function run(name: string, ...args: string[]) {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: `${join(clone, "bin")}${delimiter}${process.env["PATH"]}`,
  };
  // In a test, nothing is installed.
  delete env["NODE_TEST_CONTEXT"];
  return spawnSync(join(clone, "scripts", name), args, { encoding: "utf8", env });
}

test("--help installs nothing", () => {
  assert.ok(installing.includes("start-all.sh"));
  for (const name of installing) {
    const { status, stdout, stderr } = run(name, "--help");
    assert.equal(status, 0, `${name}: ${stderr}`);
    assert.match(stdout, /^(?:usage: |[A-Z]\w+,? )/, name);
    assert.ok(!existsSync(npmWasCalled), name);
  }
  assert.match(run("start-all.sh", "-h").stdout, /^Starts the local cluster of three members/);
});

test("without it, what is missing is installed", () => {
  const { status, stderr } = run("status.sh");
  assert.equal(status, 1);
  assert.match(stderr, /npm ci failed/);
  assert.ok(existsSync(npmWasCalled));
});
