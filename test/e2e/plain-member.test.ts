/**
 * What a member without options loads: no file of a feature that is off. Each such file costs every
 * member time at its start and memory for as long as it runs; it is loaded where it is first used.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/release/programs.ts";
import { withCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";
import { scratchDirectory } from "../support/scratch.ts";

/**
 * Writes the address of each module that the program loads into the file LOADED_MODULES, and at its
 * end those of Node.
 */
const NOTES = `import { registerHooks } from "node:module";
import { appendFileSync } from "node:fs";
registerHooks({
  load(url, context, next) {
    appendFileSync(process.env.LOADED_MODULES, url + "\\n");
    return next(url, context);
  },
});
process.on("exit", () => {
  const names = process.moduleLoadList.map((line) => line.replace("NativeModule ", "node:"));
  appendFileSync(process.env.LOADED_MODULES, names.join("\\n") + "\\n");
});`;

/** Modules of Node that take milliseconds to load, and are for other members, logs and systemd. */
const LATE = ["node:child_process", "node:http2", "node:zlib"];

/** Of other projects: LevelDB and its tools, the log's lines, hashes. */
const LIBRARIES = [
  "@noble/hashes",
  "@pinojs/redact",
  "abstract-level",
  "atomic-sleep",
  "classic-level",
  "level",
  "level-supports",
  "level-transcoder",
  "maybe-combine-errors",
  "module-error",
  "node-gyp-build",
  "on-exit-leak-free",
  "pino",
  "pino-std-serializers",
  "quick-format-unescaped",
  "safe-stable-stringify",
  "sonic-boom",
  "thread-stream",
];

/** Of this repository, with what is loaded of each where that is not most of it. */
const PACKAGES: Readonly<Record<string, readonly string[] | undefined>> = {
  bolt: undefined,
  cli: undefined,
  front: undefined,
  host: undefined,
  "http-kv": undefined,
  member: undefined,
  metrics: undefined,
  proto: undefined,
  quorate: undefined,
  raft: undefined,
  rpc: undefined,
  server: undefined,
  services: undefined,
  store: undefined,
  transport: undefined,
  v2: ["index.ts", "src/expiry.ts", "src/keys.ts", "src/load.ts", "src/txn-parts.ts"],
  wal: undefined,
};

/** Directories and files of features that are off, in packages that are loaded. */
const OFF = /^packages[/]server[/](?:node[/](?:audit[/]index|tracing[/])|src[/]config[/]yaml-file)/;

test("a member without options loads no file of a feature that is off", async () => {
  const list = join(scratchDirectory("quorate-modules-"), "modules");
  const env = {
    NODE_OPTIONS: `--import ${JSON.stringify(`data:text/javascript,${encodeURIComponent(NOTES)}`)}`,
    LOADED_MODULES: list,
  };
  await withCluster({ size: 1, executable: quorate, env }, async () => {});
  const loaded = [...new Set(readFileSync(list, "utf8").split("\n"))];
  assert.ok(loaded.includes("node:crypto"));
  assert.deepEqual(
    loaded.filter((name) => LATE.includes(name)),
    [],
  );
  const files = loaded
    .filter((url) => url.startsWith(`file://${root}/`))
    .map((url) => url.slice(`file://${root}/`.length))
    .sort();
  const below = (directory: string): string[] =>
    files
      .filter((file) => file.startsWith(`${directory}/`))
      .map((file) => file.slice(directory.length + 1));
  const libraries = below("node_modules").map(
    (file) => /^(?:@[^/]+[/])?[^/]+/.exec(file)?.[0] ?? file,
  );
  assert.deepEqual([...new Set(libraries)].sort(), LIBRARIES);
  const packages = below("packages").map((file) => file.split("/")[0]!);
  assert.deepEqual([...new Set(packages)].sort(), Object.keys(PACKAGES));
  for (const [name, loaded] of Object.entries(PACKAGES))
    if (loaded !== undefined) assert.deepEqual(below(`packages/${name}`), loaded, name);
  assert.deepEqual(
    files.filter((file) => OFF.test(file)),
    [],
  );
});
