/**
 * quorate-certs --owner: whose the directory and its keys are, after making and after each step of
 * a rotation.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const program = join(import.meta.dirname, "../../scripts/certs/main.ts");
const scratch = mkdtempSync(join(tmpdir(), "quorate-owner-"));
after(() => rmSync(scratch, { recursive: true }));

function certs(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
}

/** "uid:gid" of everything in a directory, itself too, each once. */
function owners(dir: string): string[] {
  const paths = [
    dir,
    ...readdirSync(dir, { recursive: true }).map((path) => join(dir, String(path))),
  ];
  return [...new Set(paths.map((path) => `${statSync(path).uid}:${statSync(path).gid}`))];
}

const isRoot = process.getuid?.() === 0;

test("root makes a user the owner of the directory, by name or number, and each step of a rotation leaves it with them", {
  skip: isRoot ? false : "only root can give files away",
}, () => {
  const dir = join(scratch, "given");
  const made = certs("create", "--dir", dir, "--owner", "1234:2345");
  assert.deepEqual(
    [made.status, made.stdout],
    [0, `made the certificates in ${dir}\n`],
    made.stderr,
  );
  assert.deepEqual(owners(dir), ["1234:2345"]);
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  for (const step of ["trust", "issue", "drop"]) {
    assert.equal(certs("rotate", "--dir", dir, "--step", step).status, 0);
    assert.deepEqual(owners(dir), ["1234:2345"], step);
  }
  const named = join(scratch, "named");
  assert.equal(certs("create", "--dir", named, "--owner", "daemon").status, 0);
  assert.deepEqual(owners(named), [
    `${spawnSync("id", ["-u", "daemon"]).stdout}:${spawnSync("id", ["-g", "daemon"]).stdout}`.replaceAll(
      "\n",
      "",
    ),
  ]);
});

test("without an owner, a notice says that only root can read the keys", {
  skip: isRoot ? false : "that is for root",
}, () => {
  const { stdout } = certs("create", "--dir", join(scratch, "mine"));
  assert.match(stdout, /only root can read the keys .* --owner USER \(quorate for the units/);
});

test("an owner that is none is refused before anything is made", () => {
  const dir = join(scratch, "none");
  for (const [owner, message] of [
    [
      "no-such-user",
      /there is no user no-such-user on this machine \(the package and install\.sh make the user quorate\)/,
    ],
    ["0:no-such-group", /there is no group no-such-group/],
    [":daemon", /it should be USER or USER:GROUP/],
    ["a:b:c", /it should be USER or USER:GROUP/],
    ["-x", /there is no user -x|argument is ambiguous/],
  ] as const) {
    const { status, stderr } = certs("create", "--dir", dir, "--owner", owner);
    assert.equal(status, 2, stderr);
    assert.match(stderr, message);
  }
  assert.equal(certs("check", "--dir", dir, "--owner", "daemon").status, 2);
  assert.equal(existsSync(dir), false);
});

test("who is not root cannot give files to others, and the refusal comes before anything is made", {
  skip: isRoot ? false : "needs root to become another user",
}, () => {
  const dir = join(scratch, "not-root");
  const words = JSON.stringify(["x", "create", "--dir", dir, "--owner", "0"]);
  const code = `process.setgid(65534); process.setuid(65534); process.argv = [process.argv[0], ...${words}]; await import("${program}");`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    encoding: "utf8",
  });
  assert.equal(status, 2, stderr);
  assert.match(stderr, /only root can give files to another user; run it with sudo/);
  assert.equal(existsSync(dir), false);
});
