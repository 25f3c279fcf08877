/**
 * @quorate/client from its tarball, in an empty directory: its pages' programs on Bun, Deno and the
 * oldest Node, and what publint and arethetypeswrong say of it. All come from npm's registry, so it
 * runs in ./dev soak packages alone.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { startMember } from "@quorate/embed/node";
import { archiveName, libraries, libraryArchive } from "../../scripts/release/library.ts";
import { forOldRuntime, MIGRATION, namedPrograms } from "./programs.ts";

const run = promisify(execFile);
const [, client] = libraries;

/** What runs a file, from the directory's node_modules/.bin. */
const RUNTIMES: readonly (readonly [name: string, program: string, ...words: string[]])[] = [
  ["Node 20", "node"],
  ["Bun", "bun", "run"],
  ["Deno", "deno", "run", "--allow-all", "--node-modules-dir=manual"],
];

const TOOLS = ["node@20", "bun@1", "deno@2", "publint", "@arethetypeswrong/cli"];

suite("the client's package on other runtimes", {
  skip: process.env["QUORATE_SOAK"] !== "1" && "in ./dev soak packages",
}, () => {
  const project = mkdtempSync(join(tmpdir(), "quorate-runtimes-"));
  const archive = archiveName(client, "0.0.0");
  const bin = (name: string): string => join(project, "node_modules/.bin", name);
  const options = { cwd: project, timeout: 300_000 };
  after(() => rmSync(project, { recursive: true, force: true }));
  before(async () => {
    writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
    writeFileSync(join(project, archive), gzipSync(await libraryArchive(client, "0.0.0", 0)));
    await run("npm", ["install", "--no-audit", "--no-fund", `./${archive}`, ...TOOLS], options);
  });

  for (const [runtime, program, ...words] of RUNTIMES)
    for (const { name, program: text, output } of namedPrograms([client.page, MIGRATION]))
      test(`${name} prints what the page shows on ${runtime}`, async () => {
        await using member = await startMember();
        const file = join(project, `${name.replaceAll(/\W/g, "-")}.js`);
        writeFileSync(file, await forOldRuntime(text));
        const env = { ...process.env, NODE_OPTIONS: "", ENDPOINT: member.endpoints[0] };
        const { stdout, stderr } = await run(bin(program), [...words, file], { ...options, env });
        assert.equal(stdout, output, stderr);
      });

  test("publint has nothing to say", async () => {
    const home = join(project, "node_modules", client.name);
    const { stdout } = await run(bin("publint"), ["--strict", home], options);
    assert.match(stdout, /All good/);
  });

  test("its types are found by every resolution of modules", async () => {
    const args = [archive, "--profile", "esm-only"];
    const { stdout } = await run(bin("attw"), args, options);
    assert.match(stdout, /No problems found/);
  });
});
