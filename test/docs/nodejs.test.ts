/**
 * docs/guide/nodejs.md: its programs run against the npm package as a project would have it, and a
 * program in TypeScript is checked against its declarations.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { linksOf } from "../../scripts/release/documents.ts";
import { libraryFiles } from "../../scripts/release/library.ts";

const root = join(import.meta.dirname, "../..");
const project = mkdtempSync(join(tmpdir(), "quorate-nodejs-"));
after(() => rmSync(project, { recursive: true, force: true }));

/** The package's files in node_modules, beside what it depends on. */
async function install(): Promise<{
  dependencies: Record<string, string>;
  exports: Record<string, object>;
}> {
  const modules = join(project, "node_modules");
  for (const [path, content] of await libraryFiles("0.0.0")) {
    const target = join(modules, "quorate", path);
    mkdirSync(join(target, ".."), { recursive: true });
    writeFileSync(target, content);
  }
  const manifest = JSON.parse(readFileSync(join(modules, "quorate/package.json"), "utf8"));
  for (const name of [...Object.keys(manifest.dependencies), "@types/node"]) {
    mkdirSync(join(modules, name, ".."), { recursive: true });
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  return manifest;
}

const run = promisify(execFile);
const manifest = await install();

/** The programs of the page, each with what it prints. */
function programs(): { program: string; output: string }[] {
  const page = readFileSync(join(root, "docs/guide/nodejs.md"), "utf8");
  const blocks = /```js run\n([\s\S]*?)```\n\n```text output\n([\s\S]*?)```/g;
  return [...page.matchAll(blocks)].map(([, program = "", output = ""]) => ({ program, output }));
}

test("every link of the package's pages leads to a file of the package", () => {
  const home = join(project, "node_modules/quorate");
  const below = readdirSync(join(home, "docs"), { recursive: true, encoding: "utf8" });
  const inDocs = below.filter((name) => name.endsWith(".md")).map((name) => join("docs", name));
  const pages = ["README.md", ...inDocs];
  const links = pages.flatMap((page) =>
    linksOf(page, readFileSync(join(home, page), "utf8")).map((to) => ({ page, to })),
  );
  assert.ok(links.filter(({ page }) => page === "README.md").length >= 3, JSON.stringify(links));
  assert.deepEqual(
    links.filter(({ to }) => !existsSync(join(home, to))),
    [],
  );
});

test("the page has programs", () => assert.equal(programs().length, 2));

for (const [index, { program, output }] of programs().entries()) {
  test(`program ${index + 1} of docs/guide/nodejs.md prints what the page shows`, async () => {
    const file = join(project, `program-${index}.js`);
    writeFileSync(file, program);
    const { stdout, stderr } = await run(process.execPath, [file], { timeout: 120_000 });
    assert.equal(stdout, output, stderr);
  });
}

test("the package depends on what is pinned here, and on no package of this repository", () => {
  assert.ok("level" in manifest.dependencies);
  for (const [name, version] of Object.entries(manifest.dependencies)) {
    assert.match(version, /^\d+\.\d+\.\d+$/, name);
    assert.doesNotMatch(name, /^@quorate\//);
  }
});

/** Part of a program that embeds an API server, where the package has one. */
const API_SERVER = `
import { startApiServer } from "quorate/apiserver";
await using api = await startApiServer();
export const url: string = api.url;
`;

test("a program in TypeScript is checked against the declarations", async () => {
  const source = (end: string): string => `
import {
  type AlarmMember, type Change, type Client, type Compare, compareVersion, ConfigError, connect,
  type ErrorName, opPut, type RequestOp, type RunningMember, StartError, startMember,
  type WatchResponse,
} from "quorate";
${"./apiserver" in manifest.exports ? API_SERVER : ""}
const member: RunningMember = await startMember({ flags: ["--name=a"] });
const client: Client = connect({ endpoints: member.endpoints });
export async function last(): Promise<Change | undefined> {
  for await (const change of client.watch("k").changes()) return change;
  return undefined;
}
const compare: readonly Compare[] = [compareVersion("k", "=", 0)];
const success: readonly RequestOp[] = [opPut("k", "v")];
await client.txn({ compare, success });
export const name: ErrorName = "Compacted";
export const alarm: Partial<AlarmMember> = { memberID: 1n };
export async function first(): Promise<WatchResponse | undefined> {
  for await (const response of client.watch("k")) return response;
  return undefined;
}
export function why(error: unknown): string {
  if (error instanceof ConfigError) return error.code;
  return error instanceof StartError ? error.code : "";
}
${end}
`;
  const config = {
    compilerOptions: {
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      types: ["node"],
      target: "ES2024",
      lib: ["ES2024", "ESNext"],
      module: "NodeNext",
      moduleResolution: "NodeNext",
    },
    files: ["program.ts"],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
  const check = async (end: string): Promise<string> => {
    writeFileSync(join(project, "program.ts"), source(end));
    const tsc = join(root, "node_modules/.bin/tsc");
    return run(tsc, ["-p", project]).then(
      () => "",
      (error: { stdout: string }) => error.stdout,
    );
  };
  assert.equal(await check(""), "");
  assert.match(await check("client.put(7);"), /error TS/);
});
