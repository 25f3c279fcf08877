/**
 * `./dev`: the commands are there, mistakes are errors, and the exit code is the command's.
 * @slow
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Command, commands, isGroup, isProgram, ROOT } from "../../scripts/dev/commands.ts";
import { isSlow, TURNS, testFilesOf } from "../../scripts/dev/test-files.ts";
import { freshSeed } from "../support/fresh-seed.ts";

/** All that can be run, by the words that lead there. */
function* leavesOf(
  command: Command,
  path: readonly string[] = [],
): Generator<[path: readonly string[], command: Command]> {
  if (!isGroup(command)) yield [path, command];
  else
    for (const [name, inner] of Object.entries(command.commands))
      yield* leavesOf(inner, [...path, name]);
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const dev = (...words: string[]): Ended => run("./dev", words);

function run(program: string, words: readonly string[]): Ended {
  const { status, stdout, stderr } = spawnSync(program, words, {
    cwd: ROOT,
    encoding: "utf8",
    // Inside a test Node's runner would report to the runner outside.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    timeout: 300_000,
  });
  return { code: status, stdout, stderr };
}

const leaves = [...leavesOf(commands)];

test("each program is there, and reads its command line", () => {
  for (const [, command] of leaves) {
    if (!isProgram(command)) continue;
    assert.ok(existsSync(join(ROOT, command.file)), command.file);
    // A program that does not look at its words does its whole work when asked for help.
    assert.match(
      readFileSync(join(ROOT, command.file), "utf8"),
      /\b(?:read(?:Arguments|Options)|comparePlay)\(/,
      command.file,
    );
  }
});

test("the help of each group lists its commands with what they do", () => {
  const groups = new Map<string, Command>([["", commands]]);
  for (const [name, command] of Object.entries(commands.commands))
    if (isGroup(command)) groups.set(name, command);
  assert.ok(groups.size > 8);
  for (const [name, group] of draw([...groups], Math.min(DRAWN, 4))) {
    const { code, stdout } = dev(...(name === "" ? [] : [name]), "--help");
    assert.equal(code, 0);
    if (!isGroup(group)) continue;
    for (const [inner, { about }] of Object.entries(group.commands)) {
      const line = stdout
        .split("\n")
        .find((text) => text.trim().startsWith(`./dev ${name}${name && " "}${inner} `));
      assert.ok(line?.includes(about.slice(0, 30)), `${name} ${inner}: ${line}`);
    }
  }
});

/** Programs that are given an unknown option too, one of each way to read it. */
const WRONG_TOO = ["bench rows", "sim members", "robustness members", "man", "gen"];

/** The commands of one run: each start costs a second where much else runs. */
const DRAWN = process.env["QUORATE_SOAK"] === "1" ? leaves.length : 8;

/** So many of the values, each once; which ones follows from the commit. */
function draw<T>(values: readonly T[], count: number): T[] {
  const first = freshSeed() % values.length;
  return [...values.slice(first), ...values.slice(0, first)].slice(0, count);
}

const isWrongToo = (leaf: (typeof leaves)[number]) => WRONG_TOO.includes(leaf[0].join(" "));

describe("commands", () => {
  const others = leaves.filter((leaf) => !isWrongToo(leaf));
  for (const [path, command] of [...leaves.filter(isWrongToo), ...draw(others, DRAWN)]) {
    const name = path.join(" ");
    test(`${name}: --help, and an option that there is not`, () => {
      const isOne = WRONG_TOO.includes(name);
      // Programs share one way to be started and one reader of command lines.
      const help =
        isProgram(command) && !isOne
          ? run(process.execPath, [...(command.node ?? []), command.file, "--help"])
          : dev(...path, "--help");
      assert.equal(help.code, 0, help.stderr);
      assert.match(help.stdout, /--help/);
      if (isProgram(command) && !isOne) return;
      const wrong = dev(...path, "--no-such-option");
      assert.equal(wrong.code, 2, wrong.stdout);
      assert.match(wrong.stderr, /no-such-option; .*--help/);
    });
  }
});

test("words that lead nowhere", () => {
  for (const words of [["nope"], ["check", "nope"], ["fuzz"], ["test", "nope"]]) {
    const { code, stderr } = dev(...words);
    assert.equal(code, 2, words.join(" "));
    assert.match(stderr, /nope|missing/);
  }
});

test("a mistyped command names the near one", () => {
  for (const [words, near] of [
    [["bnech", "put"], "bench"],
    [["fuzz", "jsn"], "json"],
    [["check", "hose"], "house"],
  ] as const) {
    const { code, stderr } = dev(...words);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`is no command. Did you mean ${near}\\?`));
  }
});

test("completion names commands, and the options of a program", () => {
  assert.match(dev("--get-yargs-completions", "dev", "").stdout, /^bench$/m);
  assert.match(dev("--get-yargs-completions", "dev", "bench", "").stdout, /^hold$/m);
  assert.match(dev("--get-yargs-completions", "dev", "bench", "hold", "--").stdout, /^--leased$/m);
  assert.match(dev("completion").stdout, /--get-yargs-completions/);
});

test("the turns of slow test files hold each once; all others belong to every build", () => {
  const { files: all, leftOut: none } = testFilesOf(ROOT, undefined);
  assert.deepEqual(none, []);
  const builds = Array.from({ length: TURNS }, (_, turn) => testFilesOf(ROOT, turn));
  for (const { files, leftOut } of builds)
    assert.deepEqual([...files, ...leftOut].sort(), [...all].sort());
  const timesOf = (file: string) => builds.filter(({ files }) => files.includes(file)).length;
  assert.equal(timesOf("test/scripts/dev.test.ts"), 1);
  assert.equal(timesOf("test/docs/readme.test.ts"), TURNS);
  assert.deepEqual(new Set(all.map(timesOf)), new Set([1, TURNS]));
  assert.equal(isSlow("/**\n * A test.\n * @slow\n */\nimport"), true);
  assert.equal(isSlow('/** A test. */\nimport "x";\n/**\n * @slow\n */'), false);
});

test("a run of tests takes several files and directories", () => {
  const { code, stdout } = dev(
    "test",
    "packages/raft/test/quorum.test.ts",
    "packages/wal/test/format.test.ts",
    "packages/http-kv/test",
  );
  assert.equal(code, 0, stdout);
  for (const part of ["majority", "segment"]) assert.ok(stdout.includes(part), stdout);
});

test("the exit code of the command is that of ./dev", () => {
  const file = join(ROOT, "test/scripts/fails-for-dev.test.ts");
  try {
    writeFileSync(file, 'import { test } from "node:test";\ntest("fails", () => { throw 1; });\n');
    assert.equal(dev("test", "test/scripts/fails-for-dev.test.ts").code, 1);
  } finally {
    rmSync(file);
  }
  assert.equal(dev("test", "packages/raft/test/quorum.test.ts").code, 0);
});

test("the scripts of package.json are few, and lead to ./dev or a script", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  assert.ok(Object.keys(scripts).length <= 12);
  for (const script of Object.values(scripts)) {
    const words = /^\.\/dev (.+)$/.exec(script)?.[1].split(" ");
    if (words === undefined) assert.ok(existsSync(join(ROOT, script)), script);
    else assert.ok(Object.hasOwn(commands.commands, words[0]), script);
  }
});
