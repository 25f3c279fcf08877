/**
 * Completion scripts: the words that they offer in the shells that are installed.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { commandNodes, loadProgram, runProgram } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { skipWithout } from "../../../test/support/executables.ts";
import { quoratectl } from "../src/quoratectl.ts";
import { quorateutl } from "../src/quorateutl.ts";

const scratch = mkdtempSync(join(tmpdir(), "quorate-completion-"));
after(() => rmSync(scratch, { recursive: true }));

const programs = [quoratectl, quorateutl];

/** Writes a program's script to a file and returns its path. */
async function scriptOf(program: (typeof programs)[number], shell: string): Promise<string> {
  const io = new FakeIo();
  assert.equal(await runProgram(program, ["completion", shell], io), 0, io.err);
  const path = join(scratch, `${program.name}.${shell}`);
  writeFileSync(path, io.out);
  return path;
}

/** The words that bash offers at the end of each line. */
function askBash(script: string, name: string, lines: readonly string[]): string[][] {
  const driver = `source "$1" || exit 9
    complete -p ${name} >/dev/null || exit 8
    while IFS= read -r COMP_LINE; do
      COMP_POINT=\${#COMP_LINE}; COMPREPLY=(); _${name}; printf '%s ' "\${COMPREPLY[@]}"; echo
    done`;
  const result = spawnSync("bash", ["--norc", "-c", driver, "bash", script], {
    input: `${lines.join("\n")}\n`,
    encoding: "utf8",
  });
  assert.deepEqual([result.status, result.stderr], [0, ""]);
  return result.stdout
    .split("\n")
    .slice(0, lines.length)
    .map((line) => line.split(" ").filter((word) => word !== ""));
}

for (const program of programs) {
  test(`bash completes every command and flag of ${program.name}`, {
    skip: skipWithout("bash"),
  }, async () => {
    const script = await scriptOf(program, "bash");
    const nodes = commandNodes(await loadProgram(program));
    const at = nodes.map(({ names }) => [program.name, ...names].join(" "));
    const offered = askBash(
      script,
      program.name,
      at.flatMap((line) => [`${line} `, `${line} -`]),
    );
    assert.ok(nodes.length > 10);
    for (const [i, { path, commands, flags }] of nodes.entries()) {
      const words = path.at(-1)?.words?.(program) ?? [];
      assert.deepEqual(
        offered[2 * i],
        [...commands.map((one) => one.use.split(" ")[0]), ...words],
        at[i],
      );
      const spelled = [...flags].flatMap(([name, { shorthand }]) => [
        `--${name}`,
        ...(shorthand === undefined ? [] : [`-${shorthand}`]),
      ]);
      assert.deepEqual(offered[2 * i + 1].toSorted(), spelled.toSorted(), at[i]);
    }
  });
}

test("bash finds the command behind flags, values in quotes and addresses, and completes values", {
  skip: skipWithout("bash"),
}, async () => {
  const script = await scriptOf(quoratectl, "bash");
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ["quoratectl endp", ["endpoint"]],
    ["quoratectl endpoint st", ["status"]],
    ["quoratectl --endpoints http://127.0.0.1:2379,http://b:1 endpoint he", ["health"]],
    ["quoratectl --endpoints=http://127.0.0.1:2379 -w json endpoint he", ["health"]],
    ["quoratectl --user 'a b' --hex member pro", ["promote"]],
    ["quoratectl get --sort", ["--sort-by"]],
    ["quoratectl get --sort-by ", ["CREATE", "KEY", "MODIFY", "VALUE", "VERSION"]],
    ["quoratectl get k --sort-by=V", ["VALUE", "VERSION"]],
    ["quoratectl put -w t", ["table"]],
    ["quoratectl completion p", ["powershell"]],
    ["quoratectl help endp", ["endpoint"]],
    // Otherwise the shell itself offers files.
    ["quoratectl --cacert ", []],
    ["quoratectl snapshot save ", []],
    ["quoratectl get endpoint ", []],
    ["quoratectl -- endp", []],
  ];
  const offered = askBash(
    script,
    "quoratectl",
    cases.map(([line]) => line),
  );
  for (const [i, [line, expected]] of cases.entries()) assert.deepEqual(offered[i], expected, line);
});

/** Lines, and the words that every shell offers at their ends. */
const lines: readonly (readonly [string, readonly string[]])[] = [
  ["quoratectl endpoint st", ["status"]],
  ["quoratectl --endpoints=http://127.0.0.1:2379 -w json endpoint he", ["health"]],
  ["quoratectl --endpoints http://a:1,http://b:2 member pro", ["promote"]],
  ["quoratectl get --sort-by V", ["VALUE", "VERSION"]],
  ["quoratectl get k --lim", ["--limit"]],
  ["quoratectl put -w t", ["table"]],
  ["quoratectl completion p", ["powershell"]],
  ["quoratectl get endp", []],
];

test("zsh offers the same", { skip: skipWithout("zsh") }, async () => {
  // The words passed to its completion system, without a terminal.
  const driver = `compdef() { : }; compset() { : }; _files() { : }
    _describe() { [[ $1 == -o ]] && shift; for one in "\${(@P)2}"; do offer "\${one%%:*}"; done }
    compadd() { shift; for one in "$@"; do offer "$one"; done }
    offer() { [[ $1 == "$words[CURRENT]"* ]] && print -n -- "$1 " }
    source "$1"
    while IFS= read -r line; do words=(\${(s: :)line}); CURRENT=$#words; _quoratectl; print; done`;
  const input = `${lines.map(([line]) => line).join("\n")}\n`;
  const args = ["-f", "-c", driver, "zsh", await scriptOf(quoratectl, "zsh")];
  const { status, stdout, stderr } = spawnSync("zsh", args, { input, encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  const offered = stdout.split("\n").slice(0, lines.length);
  for (const [i, [line, expected]] of lines.entries())
    assert.deepEqual(offered[i].split(" ").filter(Boolean), expected, line);
});

test("fish offers the same", { skip: skipWithout("fish") }, async () => {
  const driver = `source $argv[1]; while read -l line; echo (complete -C "$line" | string replace -r '\\t.*' ''); end`;
  const input = `${lines.map(([line]) => line).join("\n")}\n`;
  const args = ["--no-config", "-c", driver, await scriptOf(quoratectl, "fish")];
  const { status, stdout, stderr } = spawnSync("fish", args, { input, encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  const offered = stdout.split("\n").slice(0, lines.length);
  for (const [i, [line, expected]] of lines.entries())
    assert.deepEqual(offered[i].split(" ").filter(Boolean).sort(), expected, line);
});

test("the scripts of all shells name every command and flag", async () => {
  for (const program of programs) {
    for (const shell of ["zsh", "fish", "powershell"]) {
      const io = new FakeIo();
      assert.equal(await runProgram(program, ["completion", shell], io), 0);
      for (const { names, flags } of commandNodes(program)) {
        assert.ok(
          io.out.includes(names.map((name) => `/${name}`).join("")),
          `${shell}: ${names.join(" ")}`,
        );
        for (const name of flags.keys())
          assert.ok(
            io.out.includes(shell === "fish" ? `-l ${name} ` : `--${name}`),
            `${shell}: --${name}`,
          );
      }
    }
  }
});

test("an unknown shell is refused", async () => {
  for (const [args, message] of [
    [[], "Error: accepts 1 arg(s), received 0\n"],
    [["tcsh"], 'Error: invalid argument "tcsh" for "quoratectl completion"\n'],
  ] as const) {
    const io = new FakeIo();
    assert.deepEqual(
      [await runProgram(quoratectl, ["completion", ...args], io), io.err],
      [1, message],
    );
  }
});

test("help by flag and by command is the same, and an unknown topic is named", async () => {
  for (const { names } of commandNodes(quoratectl)) {
    const [byFlag, byCommand] = [new FakeIo(), new FakeIo()];
    assert.equal(await runProgram(quoratectl, [...names, "--help"], byFlag), 0);
    assert.equal(await runProgram(quoratectl, ["help", ...names], byCommand), 0);
    assert.equal(byCommand.out, byFlag.out);
  }
  const io = new FakeIo();
  assert.equal(await runProgram(quoratectl, ["help", "endpoint", "nosuch"], io), 1);
  assert.equal(
    io.err,
    'Error: unknown help topic "endpoint nosuch"; available topics: hashkv, health, status\n',
  );
});

test("every command's help has all of its flags, global ones apart", async () => {
  for (const program of programs) {
    for (const { names, flags } of commandNodes(program)) {
      const io = new FakeIo();
      await runProgram(program, [...names, "--help"], io);
      const [own, global] = io.out.split("\nGlobal flags:\n");
      for (const name of flags.keys()) {
        const part = name in program.globals || names.length === 0 ? global : own;
        assert.match(
          part,
          new RegExp(`^ {2}(?:-\\w, | {4})--${name}(?:\\[=| |$)`, "m"),
          `${names.join(" ")} --${name}`,
        );
      }
      for (const line of io.out.split("\n")) assert.ok(line.length <= 140, line);
    }
  }
});
