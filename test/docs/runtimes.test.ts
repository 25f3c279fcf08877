/**
 * The packages from their tarballs, in an empty directory: programs of the client's pages on Bun,
 * Deno and each Node that is supported, and what publint and arethetypeswrong say of each package.
 * Tools and runtimes come from npm's registry, so it runs in ./dev soak packages alone.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { startMember } from "@quorate/embed/node";
import { archiveName, libraries, libraryArchive } from "../../scripts/release/library.ts";
import { ownPlatform } from "../../scripts/release/platform.ts";
import { root } from "../../scripts/release/programs.ts";
import { forOldRuntime, MIGRATION, namedPrograms } from "./programs.ts";

const run = promisify(execFile);
const [, client] = libraries;

const { version: VERSION } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const NODE_VERSIONS = [20, 22, 24, 26];

/** What runs a file, from the directory's node_modules. */
const RUNTIMES: readonly (readonly [name: string, program: string, ...words: string[]])[] = [
  ...NODE_VERSIONS.map((version) => [`Node ${version}`, `node-${version}/bin/node`] as const),
  ["Bun", ".bin/bun", "run"],
  ["Deno", ".bin/deno", "run", "--allow-all", "--node-modules-dir=manual"],
];

const TOOLS = [
  ...NODE_VERSIONS.map((version) => `node-${version}@npm:${ownPlatform?.nodePackage}@${version}`),
  "bun@1",
  "deno@2",
  "publint",
  "@arethetypeswrong/cli",
];

suite("the packages, and the client's on other runtimes", {
  skip:
    (process.env["QUORATE_SOAK"] !== "1" && "in ./dev soak packages") ||
    (ownPlatform === undefined && "npm has no Node for this platform"),
}, () => {
  const project = mkdtempSync(join(tmpdir(), "quorate-runtimes-"));
  const module = (path: string): string => join(project, "node_modules", path);
  const options = { cwd: project, timeout: 300_000 };
  after(() => rmSync(project, { recursive: true, force: true }));
  before(async () => {
    writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
    const archives = libraries.map((library) => archiveName(library, VERSION));
    for (const [at, library] of libraries.entries()) {
      const archive = gzipSync(await libraryArchive(library, VERSION, 0));
      writeFileSync(join(project, archives[at]!), archive);
    }
    const files = archives.map((archive) => `./${archive}`);
    await run("npm", ["install", "--no-audit", "--no-fund", ...files, ...TOOLS], options);
  });

  for (const [runtime, program, ...words] of RUNTIMES)
    for (const { name, program: text, output } of namedPrograms([client.page, MIGRATION]))
      test(`${name} prints what the page shows on ${runtime}`, async () => {
        await using member = await startMember();
        const file = join(project, `${name.replaceAll(/\W/g, "-")}.js`);
        writeFileSync(file, await forOldRuntime(text));
        const env = { ...process.env, NODE_OPTIONS: "", ENDPOINT: member.endpoints[0] };
        const { stdout, stderr } = await run(module(program), [...words, file], {
          ...options,
          env,
        });
        assert.equal(stdout, output, stderr);
      });

  for (const library of libraries) {
    test(`publint has nothing to say of ${library.name}`, async () => {
      const args = ["--strict", module(library.name)];
      const { stdout } = await run(module(".bin/publint"), args, options);
      assert.match(stdout, /All good/);
    });

    test(`types of ${library.name} are found by every resolution of modules`, async () => {
      // It ends with another status than 0 for a problem that the profile does not leave out.
      const args = [archiveName(library, VERSION), "--profile", "esm-only", "--format", "ascii"];
      const { stdout } = await run(module(".bin/attw"), args, options);
      assert.match(stdout, /node16 \(from ESM\): 🟢 \(ESM\)/);
    });
  }
});
