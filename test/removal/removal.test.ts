/**
 * packages/kube-apiserver can be taken out: a copy without its folder and one line of the program
 * has good types and lint, follows the house rules, and runs. `./dev check removal` runs all other
 * tests there.
 * @slow
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import { REMOVED } from "../../scripts/contributed.ts";
import { copyWithout, withoutLine } from "./copy.ts";

const LIMIT_MS = 540_000;

// In a copy without the package there is nothing to take out.
describe("without packages/kube-apiserver", { skip: REMOVED.length > 0 }, () => {
  const copy = copyWithout();
  after(() => rmSync(copy, { recursive: true, force: true }));
  const env = {
    ...process.env,
    PATH: [join(copy, "node_modules/.bin"), process.env["PATH"]].join(delimiter),
    // A run inside a test reports to its own output.
    NODE_TEST_CONTEXT: undefined,
  };

  /** Resolves with what the command printed; rejects with it, if it fails. */
  async function run(program: string, ...args: string[]): Promise<string> {
    const options = { cwd: copy, env, timeout: LIMIT_MS, maxBuffer: 1 << 26 };
    try {
      return (await promisify(execFile)(program, args, options)).stdout;
    } catch (error) {
      const { message, stdout, stderr } = error as Error & { stdout: string; stderr: string };
      throw new Error(`${message}\n${stdout.slice(-10_000)}\n${stderr.slice(-10_000)}`);
    }
  }

  test("types", async () => {
    await run("tsc", "-p", "tsconfig.json");
  });

  test("types of pure code", async () => {
    await run("tsc", "-p", "tsconfig.pure.json");
  });

  test("lint", async () => {
    await run("biome", "check", "--error-on-warnings");
  });

  test("house rules, and the tests of the program's package", async () => {
    const printed = await run(
      process.execPath,
      "--test",
      "test/house/house.test.ts",
      "packages/quorate/test/*.test.ts",
    );
    assert.match(printed, /no import of a file that is not there/);
  });

  test("the program does the rest", async () => {
    assert.match(await run("bin/quorate.js", "--version"), /^quorate Version/);
    assert.match(await run("bin/quorate.js", "gateway", "--help"), /gateway/);
    await assert.rejects(run("bin/quorate.js", "apiserver"), /"apiserver" is not a valid flag/);
  });

  test("./dev has no commands of it", async () => {
    assert.match(await run("./dev", "bench", "--help"), /bench hold/);
    assert.doesNotMatch(await run("./dev", "bench", "--help"), /bench apiserver/);
  });
});

test("the line is there once", () => {
  const line = 'a: async () => (await import("@quorate/kube-apiserver/node")).run,';
  assert.equal(withoutLine(`x\n${line}\ny`), "x\ny");
  assert.throws(() => withoutLine("x\ny"), /0 lines/);
  assert.throws(() => withoutLine(`${line}\n${line}`), /2 lines/);
});
