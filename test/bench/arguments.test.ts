/** Command lines of the programs in bench/: mistakes are reported in a line. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

/** Runs a program of bench/ that has nothing to do but to read its command line. */
function run(
  program: string,
  ...args: string[]
): { readonly code: number | null; readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`bench/${program}.ts`, ...args], {
    encoding: "utf8",
    timeout: 120_000,
  });
  return { code: status, stdout, stderr };
}

test("a number that is none, and a name that nothing has", () => {
  assert.equal(
    run("watch", "--rounds", "no").stderr,
    '--rounds must be a number above 0, not "no"; --help lists the options\n',
  );
  assert.equal(
    run("startup", "--runs", "2.5").stderr,
    '--runs must be a whole number, not "2.5"; --help lists the options\n',
  );
  const [nothing, noRow] = [run("main", "no such"), run("profile", "no such")];
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /^there is nothing to run: no row has such a name/);
  assert.equal(noRow.code, 2);
  assert.match(noRow.stderr, /^no row is called "no such":\n {2}put random/);
});
