/** Command lines of the programs in bench/: help, and mistakes, reported in a line. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const programs = ["main", "profile", "watch", "space", "hold", "startup", "leases", "logins"];

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

for (const program of programs) {
  test(`bench/${program}.ts: --help, and an option that there is not`, () => {
    const help = run(program, "--help");
    assert.equal(help.code, 0, help.stderr);
    assert.match(help.stdout, /^\.\/dev [\w -]+/);
    const wrong = run(program, "--no-such-option");
    assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
    assert.equal(wrong.stderr, "Unknown argument: no-such-option; --help lists the options\n");
  });
}

test("a number that is none, and a name that nothing has", () => {
  assert.equal(
    run("watch", "--rounds", "no").stderr,
    '--rounds must be a number above 0, not "no"; --help lists the options\n',
  );
  assert.equal(
    run("main", "--rounds", "no").stderr,
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
