/**
 * The fuzzer: some seconds of it find nothing, and a planted bug is found.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { editOf, SOURCE_BUGS } from "@quorate/sim";
import { endsWithUs } from "../support/children.ts";
import { AwakeClock } from "./awake-clock.ts";
import { readOptions } from "./options.ts";

const MAIN = join(import.meta.dirname, "main.ts");
const PLANT = pathToFileURL(join(import.meta.dirname, "../mutants/plant.ts")).href;

async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  endsWithUs(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}

test("eight seconds of it find nothing", async () => {
  const { code, output } = await run(["--minutes", "0.13", "--seed", "11", "--round-seconds", "4"]);
  assert.equal(code, 0, output);
  assert.match(output, /^seed 11; \{"minutes":0\.13,/);
  const [, counts] = /^clean: (\{.*\})$/m.exec(output)!;
  const { calls, peerMessages, peerRequests, rounds } = JSON.parse(counts) as Record<
    string,
    number
  >;
  assert.ok(calls > 50 && peerMessages > 20 && peerRequests > 3 && rounds >= 1, output);
});

test("a member that proposes unchecked, and ends on what does not decode, is found", async () => {
  const bugs = ["proposes-unchecked", "ends-on-malformed"];
  const env = {
    NODE_OPTIONS: `--import=${PLANT}`,
    QUORATE_PLANTED: JSON.stringify(bugs.map((name) => editOf(SOURCE_BUGS[name]))),
    NODE_DISABLE_COMPILE_CACHE: "1",
    // The bug is planted in modules of the sources.
    QUORATE_TEST_BUNDLE: "",
  };
  const { code, output } = await run(["--minutes", "2", "--seed", "12"], env);
  assert.equal(code, 1, output);
  assert.match(output, /FOUND: m\d has ended by itself/);
  assert.match(output, /again with: \.\/dev fuzz cluster --seed 12/);
});

test("its command line", async () => {
  assert.match((await run(["--help"])).output, /--minutes +N: duration/);
  assert.equal(readOptions(["--minutes", "240", "--seed", "5"]).minutes, 240);
  assert.throws(() => readOptions(["--minutes", "x"]), /--minutes x: a number from 0.01 to/);
  const { code, output } = await run(["--nonsense"]);
  assert.equal(code, 2);
  assert.match(output, /^Unknown argument: nonsense;/);
});

test("its clock leaves out the time in which the process is stopped", () => {
  let readMs = 5;
  const clock = new AwakeClock(() => readMs);
  for (const passedMs of [200, 3000, 180_000, 200]) {
    readMs += passedMs;
    clock.tick();
  }
  assert.equal(clock.nowMs, 3400);
  assert.equal(clock.stops, 1);
});

test("what fails while the process is stopped is done again, what fails otherwise is not", async () => {
  let readMs = 0;
  const clock = new AwakeClock(() => readMs);
  let runs = 0;
  const fails = async (): Promise<number> => {
    readMs += ++runs === 1 ? 180_000 : 200;
    if (runs < 3) throw new Error(`run ${runs}`);
    return runs;
  };
  await assert.rejects(clock.retried(fails), /run 2/);
  assert.equal(await clock.retried(fails), 3);
});
