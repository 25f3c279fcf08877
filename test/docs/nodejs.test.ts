/**
 * docs/guide/nodejs.md, client.md and testing.md: their programs run against the npm packages as a
 * project would have them, and a program in TypeScript is checked against the declarations.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { startMember } from "@quorate/embed/node";
import { apiReport } from "../../scripts/release/api-report.ts";
import { linksOf } from "../../scripts/release/documents.ts";
import { type Library, libraries, libraryFiles } from "../../scripts/release/library.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { forOldRuntime, MIGRATION, namedPrograms, programsOf } from "./programs.ts";

const root = join(import.meta.dirname, "../..");
const project = scratchDirectory("quorate-nodejs-");

interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly exports: Record<string, object>;
}

/** The package's files in node_modules, beside what it depends on. */
async function install(library: Library): Promise<Manifest> {
  const modules = join(project, "node_modules");
  for (const [path, content] of await libraryFiles(library, "0.0.0")) {
    const target = join(modules, library.name, path);
    mkdirSync(join(target, ".."), { recursive: true });
    writeFileSync(target, content);
  }
  const path = join(modules, library.name, "package.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as Manifest;
  for (const name of [...Object.keys(manifest.dependencies), "@types/node"]) {
    const target = join(modules, name);
    mkdirSync(join(target, ".."), { recursive: true });
    if (!existsSync(target)) symlinkSync(join(root, "node_modules", name), target);
  }
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  return manifest;
}

const run = promisify(execFile);
const [whole, clientAlone, testing, creator, kubeTesting] = libraries;
const manifest = await install(whole);
const clientManifest = await install(clientAlone);
await install(testing);
await install(creator);
if (kubeTesting !== undefined) await install(kubeTesting);
/** With programs on their pages that need nothing else. */
const WITH_PROGRAMS = [whole, testing, ...(kubeTesting === undefined ? [] : [kubeTesting])];

/** This Node, and the first one on PATH that is another. */
async function nodes(): Promise<ReadonlyMap<string, string>> {
  const found = new Map([[process.version, process.execPath]]);
  for (const directory of (process.env["PATH"] ?? "").split(":")) {
    const path = join(directory, "node");
    if (found.size > 1 || !existsSync(path)) continue;
    const { stdout } = await run(path, ["--version"]);
    if (Number(/^v(\d+)/.exec(stdout)?.[1]) >= 20) found.set(stdout.trim(), path);
  }
  return found;
}

/** Found before a test is declared: a run of some tests by name ends when those so far have. */
const runtimes = await nodes();

for (const { name } of libraries) {
  test(`every link of the pages of ${name} leads to a file of the package`, () => {
    const home = join(project, "node_modules", name);
    const below = readdirSync(join(home, "docs"), { recursive: true, encoding: "utf8" });
    const inDocs = below.filter((one) => one.endsWith(".md")).map((one) => join("docs", one));
    const pages = ["README.md", ...inDocs];
    const links = pages.flatMap((page) =>
      linksOf(page, readFileSync(join(home, page), "utf8")).map((to) => ({ page, to })),
    );
    assert.ok(links.some(({ page }) => page === "README.md"));
    assert.deepEqual(
      links.filter(({ to }) => !existsSync(join(home, to))),
      [],
    );
  });
}

test("the pages have programs", () => {
  assert.equal(programsOf(whole).length, 2);
  assert.equal(programsOf(testing).length, 2);
  assert.ok(programsOf(clientAlone).length > 2);
  assert.equal(programsOf({ page: MIGRATION }).length, 2);
});

for (const library of WITH_PROGRAMS)
  for (const [index, { program, output }] of programsOf(library).entries()) {
    test(`program ${index + 1} of ${library.page} prints what the page shows`, async () => {
      const file = join(project, `program-${index}-of-${library.page.replaceAll("/", "-")}.js`);
      writeFileSync(file, program);
      // A program of its own, and no file of this run.
      const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
      const { stdout, stderr } = await run(process.execPath, [file], { env, timeout: 120_000 });
      assert.equal(stdout, output, stderr);
    });
  }

/** A program as a Node of this version takes it. */
function forNode(program: string, version: string): Promise<string> | string {
  return Number(/^v(\d+)/.exec(version)?.[1]) >= 24 ? program : forOldRuntime(program);
}

const clientPrograms = namedPrograms([clientAlone.page, MIGRATION]);
for (const [version, path] of runtimes) {
  for (const { name, program, output } of clientPrograms) {
    test(`${name} prints what the page shows on Node ${version}`, async () => {
      await using member = await startMember();
      const file = join(project, `${name.replaceAll(/\W/g, "-")}-${version}.js`);
      writeFileSync(file, await forNode(program, version));
      const env = { ...process.env, NODE_OPTIONS: "", ENDPOINT: member.endpoints[0] };
      const { stdout, stderr } = await run(path, [file], { timeout: 120_000, env });
      assert.equal(stdout, output, stderr);
    });
  }
}

/** Examples whose tests run in a build; the others run with QUORATE_SOAK. */
const QUICK_EXAMPLES: ReadonlySet<string> = new Set(["template", "job-queue"]);

for (const example of readdirSync(join(project, "node_modules", creator.name, "examples")))
  test(`npm create quorate: the tests of ${example} pass on the packages`, async (t) => {
    if (process.env["QUORATE_SOAK"] !== "1" && !QUICK_EXAMPLES.has(example)) {
      t.skip("in ./dev soak packages");
      return;
    }
    const home = join(project, `created-${example}`);
    const program = join(project, "node_modules", creator.name, "program.js");
    await run(process.execPath, [program, home, example]);
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
    const args = ["--test", "--test-reporter=tap"];
    const { stdout } = await run(process.execPath, args, { cwd: home, env, timeout: 120_000 });
    assert.match(stdout, /^# pass [1-9]$/m);
    assert.match(stdout, /^# fail 0$/m);
  });

test("the client's package depends on nothing, and takes less than a megabyte", () => {
  assert.deepEqual(clientManifest.dependencies, {});
  const home = join(project, "node_modules", clientAlone.name);
  const bytes = readdirSync(home, { recursive: true, encoding: "utf8" })
    .map((name) => statSync(join(home, name)))
    .reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
  assert.ok(bytes > 100_000 && bytes < 1_000_000, `${bytes}`);
});

/** Each package's entry with its report, and what only the package has. */
const REPORTS: readonly (readonly [Library, report: string, own: RegExp, entry?: string])[] = [
  [clientAlone, "packages/client/api.txt", /^interface WatchResponse \{/m],
  [clientAlone, "packages/client/etcd3/api.txt", /^interface IWatchResponse \{/m, "etcd3"],
  [testing, "packages/testing/api.txt", /^interface ClusterOptions \{/m],
  [whole, "packages/embed/api.txt", /^interface MemberOptions \{/m],
  ...(kubeTesting === undefined
    ? []
    : [[kubeTesting, "packages/kube-apiserver/testing/api.txt", /^class KubeTest /m] as const]),
];

for (const [library, path, own, entry = "index"] of REPORTS)
  test(`the interface of ${library.name} is the one that was reviewed: ${path}`, () => {
    const report = reportOf(library, entry);
    const reviewed = join(root, path);
    // UPDATE_API=1 writes it: review the difference, and say in CHANGELOG.md what it breaks.
    if (process.env["UPDATE_API"] === "1") writeFileSync(reviewed, report);
    assert.equal(report, readFileSync(reviewed, "utf8"));
    assert.match(report, own, "what an exported declaration names is there");
  });

/** Of the client's declarations the client's report alone tells. */
function reportOf(library: Library, entry: string): string {
  const home = join(project, "node_modules", library.name);
  const paths = readdirSync(join(home, "types"), { recursive: true, encoding: "utf8" });
  const declarations = paths.filter((path) => path.endsWith(".d.ts"));
  const files = new Map(
    declarations.map((path) => [`types/${path}`, readFileSync(join(home, "types", path), "utf8")]),
  );
  const ofClient = (path: string): boolean => path.startsWith("types/packages/client/");
  const main = `types/${entry}.d.ts`;
  return apiReport(files, main, library === clientAlone ? undefined : ofClient);
}

test("the client's versions have a page, which begins with the present one", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const page = readFileSync(
    join(project, "node_modules", clientAlone.name, "CHANGELOG.md"),
    "utf8",
  );
  assert.equal(/^## (.*)$/m.exec(page)?.[1], version);
});

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
import { type Client as ClientAlone, connect as connectAlone } from "@quorate/client";
${"./apiserver" in manifest.exports ? API_SERVER : ""}
const member: RunningMember = await startMember({ flags: ["--name=a"] });
const client: Client = connect({ endpoints: member.endpoints });
export async function last(): Promise<Change | undefined> {
  for await (const change of client.watch("k").changes()) return change;
  return undefined;
}
export const alone: ClientAlone = connectAlone({ endpoints: member.endpoints });
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
