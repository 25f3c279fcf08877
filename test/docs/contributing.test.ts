/**
 * CONTRIBUTING.md: the files that it names exist, and its commands work.
 * @slow
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, test } from "node:test";
import { isRemoved } from "../../scripts/contributed.ts";
import { blocksOf } from "./guide.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");

/**
 * Paths that a page names: in code marks with an extension, or as packages/..., test/... in prose.
 */
function pathsIn(text: string): string[] {
  const marked = text.matchAll(/`([\w./-]+\/[\w./-]+\.(?:ts|json|yml|proto|txt|sh|md))`/g);
  const bare = text.matchAll(/(?<![\w/.`])((?:packages|test|scripts|docs|bench)\/[\w./-]*\w)/g);
  return [...marked, ...bare].map(({ 1: path }) => path);
}

function missingOf(text: string): string[] {
  return pathsIn(text).filter((path) => !existsSync(join(root, path)) && !isRemoved(path));
}

test("each file and directory that the page names exists", () => {
  assert.ok(pathsIn(page).length > 30);
  assert.deepEqual(missingOf(page), []);
});

test("a name that does not exist is found", () => {
  const text = "see `scripts/absent.ts`, test/house/absent.ts and packages/absent, `test/house`";
  assert.deepEqual(missingOf(text), [
    "scripts/absent.ts",
    "test/house/absent.ts",
    "packages/absent",
  ]);
});

/** The PATH of a reader: without what npm and this repository put first. */
const USERS_PATH = (process.env["PATH"] ?? "")
  .split(delimiter)
  .filter((dir) => !dir.includes("node_modules") && !dir.includes("node-gyp-bin"))
  .join(delimiter);

test("the commands run with the Node that a reader has", () => {
  const printed = execFileSync("node", ["--version"], {
    env: { ...process.env, PATH: USERS_PATH },
    encoding: "utf8",
  });
  assert.match(printed, /^v\d+/);
  const [, major] = /"node": ">=(\d+)"/.exec(readFileSync(join(root, "package.json"), "utf8"))!;
  assert.ok(page.includes(`Node ${major} or newer`));
});

describe("each command that can be run ends well", () => {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: USERS_PATH,
    // Inside a test Node's runner would report to the runner outside.
    NODE_TEST_CONTEXT: undefined,
  };
  for (const { kind, command } of blocksOf(page).filter((block) => block.kind === "run")) {
    test(`${kind}: ${command.trim().split("\n")[0]}`, () => {
      execFileSync("bash", ["-euo", "pipefail", "-c", command], {
        cwd: root,
        env,
        stdio: ["ignore", "ignore", "pipe"],
      });
    });
  }
});
