/** Parsing of command lines: the rules of pflag and cobra, on a small test program. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command, Program } from "../src/command.ts";
import { Exit } from "../src/io.ts";
import { runProgram } from "../src/program.ts";
import { FakeIo } from "../testing/fake-io.ts";

/** Prints what it was given. */
const show: Command["run"] = ({ args, flags, io }) => {
  io.stdout(
    JSON.stringify({
      args,
      all: flags.bool("all"),
      count: flags.int("count"),
      wait: flags.durationMs("wait"),
      to: flags.strings("to"),
      name: flags.string("name"),
      form: flags.string("form"),
    }),
  );
};

const program: Program = {
  name: "tool",
  short: "tool: for tests",
  groups: [
    {
      title: "Commands",
      commands: [
        {
          use: "show [options] <what>",
          short: "Shows",
          flags: {
            all: { kind: "bool", shorthand: "a", defaultText: "false", doc: "all of it" },
            count: { kind: "int", defaultText: "0", doc: "how many" },
            form: {
              kind: "string",
              defaultText: "none",
              bareText: "some",
              values: ["other"],
              doc: "which form",
            },
          },
          run: show,
        },
        {
          use: "group",
          short: "Has commands",
          flags: { deep: { kind: "bool", defaultText: "false", doc: "deep" } },
          inherits: true,
          commands: [
            {
              use: "leaf",
              short: "Leaf",
              run: ({ flags, io }) => io.stdout(`deep=${flags.bool("deep")}`),
            },
          ],
        },
        { use: "fail", short: "Fails", run: () => Promise.reject(new Exit(7, "it failed")) },
        {
          use: "silent",
          short: "Fails without a word",
          run: () => Promise.reject(new Exit(8, "")),
        },
      ],
    },
  ],
  globals: {
    name: { kind: "string", shorthand: "n", defaultText: "anon", doc: "a name" },
    to: { kind: "strings", defaultText: "x", doc: "a list" },
    wait: { kind: "duration", defaultText: "5s", doc: "a time" },
  },
  envPrefix: "TOOL",
  elsewhere: new Map([["group old", "other group old"]]),
  otherVariables: new Set(["TOOL_API"]),
};

async function run(
  argv: string[],
  env: Record<string, string> = {},
): Promise<{ code: number; out: string; err: string }> {
  const io = new FakeIo();
  Object.assign(io.env, env);
  const code = await runProgram(program, argv, io);
  return { code, out: io.out, err: io.err };
}

const shown = async (...argv: string[]): Promise<Record<string, unknown>> => {
  const { code, out, err } = await run(argv);
  assert.equal(code, 0, err);
  return JSON.parse(out) as Record<string, unknown>;
};

test("flags stand anywhere, in every spelling", async () => {
  const texts = { name: "anon", form: "none" };
  const defaults = { args: [], all: false, count: 0, wait: 5000, to: ["x"], ...texts };
  assert.deepEqual(await shown("show"), defaults);
  assert.deepEqual(await shown("--name", "b", "show", "k", "--count=3", "v", "-a"), {
    ...defaults,
    args: ["k", "v"],
    all: true,
    count: 3,
    name: "b",
  });
  for (const spelling of [["-n", "c"], ["-nc"], ["-n=c"], ["-an", "c"], ["-anc"], ["--name=c"]]) {
    assert.equal((await shown("show", ...spelling))["name"], "c", spelling.join(" "));
  }
  assert.deepEqual((await shown("show", "--to", "a,b", "--to=c"))["to"], ["a", "b", "c"]);
  assert.equal((await shown("show", "--wait=1m30s"))["wait"], 90_000);
  assert.equal((await shown("show", "--count", "-5"))["count"], -5);
  assert.equal((await shown("show", "--count", "0x10"))["count"], 16);
  assert.equal(
    (await shown("show", "--count", "9223372036854775807"))["count"],
    Number.MAX_SAFE_INTEGER,
  );
});

test("a boolean does not take the next argument", async () => {
  assert.deepEqual((await shown("show", "--all", "true"))["args"], ["true"]);
  assert.deepEqual(await shown("show", "-a=false", "false").then(({ args, all }) => [args, all]), [
    ["false"],
    false,
  ]);
});

test("a flag that may stand alone takes the next word only if it is one of its values", async () => {
  for (const [words, form, args] of [
    [["--form"], "some", []],
    [["--form", "k"], "some", ["k"]],
    [["--form", "other", "k"], "other", ["k"]],
    [["--form=k", "other"], "k", ["other"]],
  ] as const) {
    const given = await shown("show", ...words);
    assert.deepEqual([given["form"], given["args"]], [form, args], words.join(" "));
  }
});

test("after -- all are arguments, and a dash alone is one", async () => {
  assert.deepEqual((await shown("show", "-", "--", "-a", "--", "show"))["args"], [
    "-",
    "-a",
    "--",
    "show",
  ]);
});

test("an argument that is empty or has a command's name is an argument", async () => {
  assert.deepEqual((await shown("show", "", "show"))["args"], ["", "show"]);
});

test("errors have pflag's texts, with exit code 1", async () => {
  const mistakes: [string[], string][] = [
    [["show", "--nope"], "unknown flag: --nope"],
    [["show", "-x"], "unknown shorthand flag: 'x' in -x"],
    [["show", "-ax"], "unknown shorthand flag: 'x' in -x"],
    [["show", "--count"], "flag needs an argument: --count"],
    [["show", "-n"], "flag needs an argument: 'n' in -n"],
    [
      ["show", "--count", "x"],
      'invalid argument "x" for "--count" flag: strconv.ParseInt: parsing "x": invalid syntax',
    ],
    [
      ["show", "--count", "9223372036854775808"],
      'invalid argument "9223372036854775808" for "--count" flag: strconv.ParseInt: parsing "9223372036854775808": value out of range',
    ],
    [
      ["show", "--all=maybe"],
      'invalid argument "maybe" for "-a, --all" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ],
    [
      ["show", "--wait", "5"],
      'invalid argument "5" for "--wait" flag: time: missing unit in duration "5"',
    ],
    [
      ["show", "--wait", "5x"],
      'invalid argument "5x" for "--wait" flag: time: unknown unit "x" in duration "5x"',
    ],
    [["show", "--wait", "s"], 'invalid argument "s" for "--wait" flag: time: invalid duration "s"'],
    [["show", "---x"], "bad flag syntax: ---x"],
    [["show", "--=x"], "bad flag syntax: --=x"],
    [["--all", "show"], "unknown flag: --all"],
  ];
  for (const [argv, message] of mistakes) {
    const { code, out, err } = await run(argv);
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.equal(err.split("\n")[0], `Error: ${message}`);
    assert.match(err, /\nRun 'tool(?: show)? --help' for usage\.\n$/);
  }
  assert.deepEqual(await run(["nosuch"]), {
    code: 1,
    out: "",
    err: 'Error: unknown command "nosuch" for "tool"\nRun \'tool --help\' for usage.\n',
  });
});

test("a group refuses a word that names none of its commands", async () => {
  const { code, out, err } = await run(["group", "laef"]);
  assert.deepEqual([code, out], [1, ""]);
  assert.equal(
    err,
    'Error: unknown command "laef" for "tool group"\n\nDid you mean this?\n\tleaf\n\nRun \'tool group --help\' for usage.\n',
  );
  assert.equal((await run(["group", "laef", "--help"])).code, 0);
  assert.equal((await run(["group", "help"])).code, 0);
  assert.equal((await run(["group"])).code, 0);
  assert.match((await run(["group", "old"])).err, /Did you mean this\?\n\tother group old\n/);
});

test("an unambiguous prefix names a command, and flags may come before it", async () => {
  assert.equal((await run(["gr", "le", "--deep"])).out, "deep=true");
  assert.equal((await run(["--deep=true", "group", "leaf"])).out, "deep=true");
  assert.equal((await run(["--name", "group", "group", "leaf"])).out, "deep=false");
  // "fail" and no other begins with "f"; two begin with "s".
  assert.equal((await run(["f"])).code, 7);
  const { code, err } = await run(["s"]);
  assert.deepEqual([code, err.split("\n\n")[0]], [1, 'Error: unknown command "s" for "tool"']);
  assert.match(err, /\n\nDid you mean this\?\n\tshow\n\tsilent\n/);
  assert.match((await run(["shwo"])).err, /\n\nDid you mean this\?\n\tshow\n/);
});

test("a command ends with its own code and message", async () => {
  assert.deepEqual(await run(["fail"]), { code: 7, out: "", err: "Error: it failed\n" });
  assert.deepEqual(await run(["silent"]), { code: 8, out: "", err: "" });
});

test("subcommands take their parent's flags where it lets them", async () => {
  assert.equal((await run(["group", "leaf", "--deep"])).out, "deep=true");
  assert.equal((await run(["group", "--deep", "leaf"])).out, "deep=true");
  assert.equal((await run(["group", "leaf"], { TOOL_DEEP: "true" })).out, "deep=true");
});

test("the program, a group and a command have help, with every flag", async () => {
  for (const argv of [[], ["--help"], ["-h"]]) {
    const { code, out } = await run(argv);
    assert.equal(code, 0);
    assert.match(
      out,
      /^tool: for tests\n\nUsage:\n {2}tool \[command\]\n\nCommands:\n {2}show {4}Shows\n/,
    );
    assert.match(out, /^ {2}-n, --name string {5}a name \(default "anon"\)$/m);
    assert.match(out, /TOOL_NAME/);
  }
  const show = await run(["show", "--help", "--count=1"]);
  assert.match(
    show.out,
    /^Shows\n\nUsage:\n {2}tool show \[options\] <what>\n\nFlags:\n {2}-a, --all {13}all of it\n/,
  );
  assert.match(show.out, /\n\nGlobal flags:\n {2}-n, --name string {5}a name/);
  const group = await run(["group"]);
  assert.match(group.out, /Commands:\n {2}leaf {2}Leaf\n/);
});

test("variables set global flags; beside the flag they are refused, unknown ones cause a warning", async () => {
  const set = await run(["show"], {
    TOOL_NAME: "env",
    TOOL_TO: "p,q",
    TOOL_WAIT: "",
    OTHER: "x",
    TOOL_API: "3",
  });
  assert.deepEqual(JSON.parse(set.out), {
    args: [],
    all: false,
    count: 0,
    wait: 5000,
    to: ["p", "q"],
    name: "env",
    form: "none",
  });
  assert.equal(set.err, "");
  assert.match(
    (await run(["show", "-n", "x"], { TOOL_NAME: "env" })).err,
    /^Error: conflicting environment variable "TOOL_NAME" is shadowed/,
  );
  assert.equal(
    (await run(["show"], { TOOL_NAEM: "x" })).err,
    "Warning: unrecognized environment variable TOOL_NAEM\n",
  );
  assert.match(
    (await run(["show"], { TOOL_WAIT: "soon" })).err,
    /^Error: invalid value "soon" for TOOL_WAIT: .*invalid duration/,
  );
});
