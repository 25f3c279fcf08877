/**
 * The files in bin/: the Node that they run on, arguments, streams, signals, exit codes, and a
 * killed launcher.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { endsWith } from "../../../test/support/children.ts";
import { scratchDirectory } from "../../../test/support/scratch.ts";

const root = join(import.meta.dirname, "../../..");
const scratch = scratchDirectory("quorate-launcher-");

/** A Node of the machine that is too old to run the code, where there is one. */
const oldNode = ["/usr/bin/node", "/usr/local/bin/node"].find(
  (path) =>
    existsSync(path) &&
    Number.parseInt(spawnSync(path, ["-p", "process.versions.node"]).stdout.toString(), 10) < 26,
);
const withOldNode = oldNode === undefined ? { skip: "no Node older than 26 on this machine" } : {};

/** A program that prints where it runs, then does what its first argument says. */
const probe = join(scratch, "probe.ts");
writeFileSync(
  probe,
  `const [verb, ...rest]: string[] = process.argv.slice(2);
// First of all: the reader of the line below may send a signal at once.
if (verb === "wait") process.on("SIGTERM", () => process.exit(42));
const major = Number.parseInt(process.versions.node, 10);
process.stdout.write(JSON.stringify({ major, pid: process.pid, rest, env: process.env["QUORATE_LAUNCHER"] ?? null }) + "\\n");
if (verb === "exit") process.exitCode = Number(rest[0]);
if (verb === "echo") process.stdin.pipe(process.stdout);
if (verb === "wait") setInterval(() => {}, 1000);
`,
);
/** A launcher in the form of those in bin/, under the same rules. */
const launcher = join(scratch, "launcher.js");
writeFileSync(
  launcher,
  `import { launch } from ${JSON.stringify(pathToFileURL(join(root, "bin/launch.js")).href)};
await launch("probe", ${JSON.stringify(probe)});
`,
);
writeFileSync(join(scratch, "package.json"), '{ "type": "module" }');

/** Makes a new Node pass for an older one that has process.execve. */
const pretendOlder = `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"24.0.0"}})`;

const ways: readonly { name: string; command: readonly string[]; options: { skip?: string } }[] = [
  { name: "the pinned Node", command: [process.execPath, launcher], options: {} },
  {
    name: "an older Node with execve",
    command: [process.execPath, "--import", pretendOlder, launcher],
    options: {},
  },
  {
    name: "an older Node without execve",
    command: [oldNode ?? "", launcher],
    options: withOldNode,
  },
];

function run(
  command: readonly string[],
  args: readonly string[],
  input = "",
): { status: number | null; stdout: string; stderr: string } {
  const result = spawnSync(command[0], [...command.slice(1), ...args], {
    input,
    encoding: "utf8",
  });
  return { status: result.status, stdout: result.stdout, stderr: result.stderr };
}

/**
 * Starts a waiting probe. Returns the launcher's process and the probe's output; both end with the
 * test.
 */
async function startWaiting(
  t: TestContext,
  command: readonly string[],
): Promise<{ child: ChildProcess; pid: number }> {
  const child = endsWith(
    spawn(command[0], [...command.slice(1), "wait"], { stdio: ["ignore", "pipe", "inherit"] }),
    t,
  );
  const ended = once(child, "close").then(() =>
    assert.fail("the launcher has ended before the probe said anything"),
  );
  const [chunk] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  const { pid } = JSON.parse(chunk.toString()) as { pid: number };
  t.after(() => {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It is gone, as it should be.
    }
  });
  return { child, pid };
}

for (const { name, command, options } of ways) {
  test(`${name}: arguments, streams and exit code pass through`, options, () => {
    const exit = run(command, ["exit", "7", "--flag", "a b", ""]);
    assert.equal(exit.status, 7, exit.stderr);
    assert.equal(exit.stderr, "");
    const said = JSON.parse(exit.stdout) as { major: number; rest: string[]; env: string | null };
    assert.ok(said.major >= 26);
    assert.deepEqual(said.rest, ["7", "--flag", "a b", ""]);
    assert.equal(said.env, null);
    const echo = run(command, ["echo"], "through");
    assert.equal(echo.stdout.split("\n")[1], "through");
  });

  test(`${name}: SIGTERM reaches the program, and its exit code comes back`, options, async (t) => {
    const { child, pid } = await startWaiting(t, command);
    child.kill("SIGTERM");
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    assert.deepEqual({ code, signal }, { code: 42, signal: null });
    assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  });

  test(
    `${name}: a signal that ends the program ends the launcher in the same way`,
    options,
    async (t) => {
      const { child } = await startWaiting(t, command);
      child.kill("SIGUSR2");
      const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
      assert.deepEqual({ code, signal }, { code: null, signal: "SIGUSR2" });
    },
  );

  test(`${name}: SIGKILL to the launcher takes the program with it`, options, async (t) => {
    const { child } = await startWaiting(t, command);
    const exited = once(child, "exit");
    // Standard output closes when the program is gone, whatever its parent is by then.
    const closed = once(child.stdout!, "close");
    child.kill("SIGKILL");
    await Promise.all([exited, closed]);
    assert.equal(child.signalCode, "SIGKILL");
  });
}

test("with the pinned Node or with execve there is one process", async (t) => {
  for (const { command } of ways.slice(0, 2)) {
    const { child, pid } = await startWaiting(t, command);
    assert.equal(pid, child.pid);
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

test("started by their name, the bin files go to the pinned Node through sh, also through a link", () => {
  const copy = join(scratch, "copy");
  mkdirSync(join(copy, "bin"), { recursive: true });
  mkdirSync(join(copy, "node_modules/.bin"), { recursive: true });
  cpSync(join(root, "bin/quorate.js"), join(copy, "bin/quorate.js"));
  const recorder = join(copy, "node_modules/.bin/node");
  writeFileSync(recorder, '#!/bin/sh\nprintf "%s\\n" "$@"\n');
  chmodSync(recorder, 0o755);
  chmodSync(join(copy, "bin/quorate.js"), 0o755);
  const link = join(scratch, "quorate-link");
  spawnSync("ln", ["-s", join(copy, "bin/quorate.js"), link]);
  for (const path of [join(copy, "bin/quorate.js"), link]) {
    assert.equal(
      run([path], ["--name", "a b"]).stdout,
      `--disable-sigusr1\n${join(copy, "bin/quorate.js")}\n--name\na b\n`,
    );
  }
});

test("without a suitable Node the message says what is needed", withOldNode, () => {
  const lonely = join(scratch, "lonely");
  mkdirSync(join(lonely, "bin"), { recursive: true });
  for (const name of readdirSync(join(root, "bin")))
    cpSync(join(root, "bin", name), join(lonely, "bin", name));
  writeFileSync(join(lonely, "package.json"), '{ "type": "module" }');
  const { status, stderr } = run([oldNode!, join(lonely, "bin/quorate.js")], []);
  assert.equal(status, 1);
  assert.match(
    stderr,
    /^quorate needs Node 26 or newer; this is v\d+\.\d+\.\d+, and the pinned one is not installed\. Run "npm ci" in .*lonely\.\n$/,
  );
});

test("package.json names the bin files, and each starts an existing program", () => {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    bin: Record<string, string>;
  };
  assert.deepEqual(Object.keys(manifest.bin), ["quorate", "quoratectl", "quorateutl"]);
  for (const [name, path] of Object.entries(manifest.bin)) {
    const text = readFileSync(join(root, path), "utf8");
    assert.match(text, /^#!\/bin\/sh\n/);
    const target = /await launch\(\s*"(\w+)",\s*"([^"]+)"/.exec(text);
    assert.equal(target?.[1], name);
    assert.ok(existsSync(join(root, target[2])), target[2]);
  }
});

test("a program with a function main runs it in a process that has not translated TypeScript, with the same number and arguments", () => {
  // Below node_modules Node does not translate; beside it, compiled code is kept in the
  // repository's own.
  const program = join(scratch, "resident.ts");
  const says = `JSON.stringify({
    pid: process.pid,
    args: process.argv.slice(2),
    flags: process.execArgv,
    mark: process.env["QUORATE_LAUNCHER"] ?? null,
    translated: (process as unknown as { moduleLoadList: string[] }).moduleLoadList.some((name) => name.includes("amaro")),
  })`;
  writeFileSync(
    program,
    `export async function main(): Promise<void> {\n  console.log(${says});\n}\n`,
  );
  const start = join(scratch, "resident.js");
  writeFileSync(
    start,
    readFileSync(launcher, "utf8").replace(
      JSON.stringify(probe),
      `${JSON.stringify(program)}, ["--max-semi-space-size=8", "--max-old-space-size-percentage=75"]`,
    ),
  );
  const [young, heap, signal] = [
    "--max-semi-space-size=8",
    "--max-old-space-size-percentage=75",
    "--disable-sigusr1",
  ];
  const [ownYoung, ownHeap] = ["--max-semi-space-size=32", "--max_old_space_size=900"];
  for (const [time, given, options, flags] of [
    ["first", ["--no-opt"], "", ["--no-opt", young, heap, signal]],
    ["second", ["--no-opt"], "", ["--no-opt", young, heap, signal]],
    ["with a flag of one's own", [ownYoung], "", [ownYoung, heap, signal]],
    ["with one's own heap", [ownHeap], "", [ownHeap, young, signal]],
    ["with one's own heap in the environment", [], ownHeap, [young, signal]],
  ] as const) {
    const { pid, status, stdout, stderr } = spawnSync(process.execPath, [...given, start, "a b"], {
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: options },
    });
    assert.deepEqual([status, stderr], [0, ""], time);
    assert.deepEqual(
      JSON.parse(stdout),
      { pid, args: ["a b"], flags, mark: null, translated: false },
      time,
    );
  }
});

test("a bundle is started while its sources are as they were, and not for who looks into them", () => {
  const copy = join(scratch, "checkout");
  const bundles = join(copy, "node_modules/.cache/quorate-bundle");
  mkdirSync(bundles, { recursive: true });
  mkdirSync(join(copy, "bin"));
  cpSync(join(root, "bin/launch.js"), join(copy, "bin/launch.js"));
  writeFileSync(join(copy, "package.json"), '{ "type": "module" }');
  writeFileSync(join(copy, "source.js"), 'console.log("source");\n');
  writeFileSync(join(bundles, "probe.mjs"), 'console.log("bundle");\n');
  writeFileSync(
    join(copy, "bin/probe.js"),
    'import { launch } from "./launch.js";\nawait launch("probe", "source.js");\n',
  );
  const { size, mtimeMs } = statSync(join(copy, "source.js"));
  const manifest = (sources: unknown) =>
    writeFileSync(
      join(bundles, "probe.json"),
      JSON.stringify({ program: "node_modules/.cache/quorate-bundle/probe.mjs", sources }),
    );
  const run = (flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, [...flags, join(copy, "bin/probe.js")], {
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: "", ...env },
    }).stdout.trim();
  assert.equal(run(), "source");
  manifest([["source.js", size, mtimeMs]]);
  assert.equal(run(), "bundle");
  assert.equal(run(["--inspect-port=0"]), "source");
  assert.equal(run([], { NODE_OPTIONS: "--import=data:text/javascript," }), "source");
  assert.equal(run([], { NODE_V8_COVERAGE: join(scratch, "coverage") }), "source");
  for (const sources of [
    [["source.js", size + 1, mtimeMs]],
    [["source.js", size, mtimeMs - 1]],
    [["gone.js", size, mtimeMs]],
    undefined,
  ]) {
    manifest(sources);
    assert.equal(run(), "source");
  }
  writeFileSync(join(bundles, "probe.json"), "{");
  assert.equal(run(), "source");
});
