/** All flags of kube-apiserver are known: its command lines start, or are refused for a reason. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type FlagValues, type Io, runProgram } from "@quorate/cli";
import { findProgram } from "../../../test/support/executables.ts";
import { optionsOf } from "../node/flag-options.ts";
import { API_SERVER_FLAGS, ignoredFlags } from "../node/flags.ts";

/** "name" for a switch, "name kind" for others, one a line. */
const KEPT = join(import.meta.dirname, "interop/kube-apiserver-flags-1.36.txt");
/** Ours is --help of every command; versions are told by `quorate --version`. */
const NOT_HERE = new Set(["help", "version"]);

function flagsIn(help: string): Map<string, boolean> {
  const lines = help.matchAll(/^ +(?:-\w, )?--([a-z0-9-]+)(?: (\S+))?(?: {2,}|$)/gm);
  return new Map([...lines].map(([, name, kind]) => [name, kind === undefined]));
}

const kept = new Map(
  readFileSync(KEPT, "utf8")
    .trim()
    .split("\n")
    .map((line): [string, boolean] => [line.split(" ", 1)[0], !line.includes(" ")]),
);

test("every flag of kube-apiserver 1.36 is known, and takes a value where that does", () => {
  assert.equal(kept.size, 172);
  for (const [name, isSwitch] of kept) {
    if (NOT_HERE.has(name)) continue;
    const flag = API_SERVER_FLAGS[name];
    assert.ok(flag !== undefined, `--${name}`);
    assert.equal(flag.kind === "bool", isSwitch, `--${name}`);
  }
});

const program = findProgram("kube-apiserver");
test("the kept flags are those of kube-apiserver", {
  skip: program === undefined ? "kube-apiserver is not on PATH" : false,
}, () => {
  const flags = flagsIn(execFileSync(program!, ["--help"], { encoding: "utf8" }));
  assert.deepEqual([...flags.keys()].sort(), [...kept.keys()].sort());
});

/** What `use` makes of the flags; the server is not started. */
async function withFlags<T>(args: string[], use: (flags: FlagValues) => T): Promise<T> {
  let result: T | undefined;
  const command = {
    use: "apiserver",
    short: "",
    flags: API_SERVER_FLAGS,
    run: async ({ flags }: { flags: FlagValues }) => {
      result = use(flags);
    },
  };
  const groups = [{ title: "", commands: [command] }];
  const errors: string[] = [];
  const io = { stdout() {}, stderr: (text: string) => void errors.push(text) } as unknown as Io;
  await runProgram({ name: "t", short: "", groups, globals: {} }, ["apiserver", ...args], io);
  assert.ok(result !== undefined, errors.join(""));
  return result;
}

test("a flag without effect has a line with the reason, and one that restricts is refused", async () => {
  const lines = await withFlags(["--profiling", "--kubelet-port=1", "--v", "5"], ignoredFlags);
  assert.deepEqual(lines, [
    ["kubelet-port", "no effect: pods do not run here"],
    ["profiling", "no effect: there are no profiles to serve"],
    ["v", "no effect: see --log-level"],
  ]);
  const why = (args: string[]) =>
    withFlags(args, (flags) => {
      try {
        optionsOf(flags);
        return "accepted";
      } catch (error) {
        return (error as Error).message;
      }
    });
  assert.equal(
    await why(["--authorization-config=a.yaml"]),
    "--authorization-config is refused: what it restricts would stay open",
  );
  assert.match(await why(["--chaos=cuts=1"]), /^--chaos: seed is missing/);
  assert.equal(await why(["--chaos=seed=1,cuts=1"]), "accepted");
  assert.equal(
    await why(["--feature-gates=A=true,B"]),
    'invalid argument "B" for "--feature-gates" flag: missing bool value for B',
  );
  assert.equal(
    await why(["--feature-gates=B=on"]),
    'invalid argument "B=on" for "--feature-gates" flag: invalid value of B: on, err: ' +
      'strconv.ParseBool: parsing "on": invalid syntax',
  );
});

test("feature gates are set by their names, or by their stage", async () => {
  const gates = (text: string) =>
    withFlags(text === "" ? [] : [`--feature-gates=${text}`], (flags) => {
      const { ShardedListAndWatch, EtcdRangeStream } = optionsOf(flags).featureGates;
      return [ShardedListAndWatch, EtcdRangeStream, ignoredFlags(flags).map(([name]) => name)];
    });
  assert.deepEqual(await gates(""), [false, true, []]);
  assert.deepEqual(await gates("AllAlpha=true,AllBeta=false"), [true, false, []]);
  assert.deepEqual(await gates("ShardedListAndWatch=0,AllAlpha=true"), [false, true, []]);
  const mixed = "EtcdRangeStream=f,Other=true,ShardedListAndWatch=t";
  assert.deepEqual(await gates(mixed), [true, false, ["feature-gates=Other"]]);
});
