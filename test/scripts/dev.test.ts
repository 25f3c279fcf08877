/** `./dev`: the commands are there, mistakes are errors, and the exit code is the command's. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Command, commands, isGroup, isProgram, ROOT } from "../../scripts/dev/commands.ts";

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

function dev(...words: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync("./dev", words, {
    cwd: ROOT,
    encoding: "utf8",
    // Inside a test Node's runner would report to the runner outside.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    timeout: 300_000,
  });
  return { code: status, stdout, stderr };
}

const leaves = [...leavesOf(commands)];

test("the help of each group lists its commands with what they do", () => {
  const groups = new Map<string, Command>([["", commands]]);
  for (const [name, command] of Object.entries(commands.commands))
    if (isGroup(command)) groups.set(name, command);
  assert.ok(groups.size > 8);
  for (const [name, group] of groups) {
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
const WRONG_TOO = ["bench rows", "sim members", "mutants", "robustness members", "man"];

describe("each command", () => {
  for (const [path, command] of leaves) {
    const name = path.join(" ");
    test(`${name}: --help, and an option that there is not`, () => {
      if (isProgram(command)) assert.ok(existsSync(join(ROOT, command.file)));
      const help = dev(...path, "--help");
      assert.equal(help.code, 0, help.stderr);
      assert.match(help.stdout, /--help/);
      // Programs share one reader of command lines; each start costs a second where much else runs.
      if (isProgram(command) && !WRONG_TOO.includes(name)) return;
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
