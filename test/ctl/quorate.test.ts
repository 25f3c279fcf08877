/**
 * The command line of `quorate` as a process: what is refused is refused before anything is
 * written.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { absentPath } from "../support/absent.ts";
import { withCluster } from "../support/cluster.ts";
import { etcd, skipWithoutEtcd } from "../support/executables.ts";
import { scratchDirectory } from "../support/scratch.ts";

const scratch = scratchDirectory("quorate-cli-");

function quorate(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const program = join(import.meta.dirname, "../../bin/quorate.js");
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [program, ...args],
      { cwd: scratch, env: { PATH: process.env["PATH"], ...env } },
      (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr }),
    );
  });
}

test("help and version go to standard output", async () => {
  const help = await quorate(["--help"]);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /\n {2}--initial-cluster string /);
  const version = await quorate(["--version"]);
  assert.match(version.stdout, /^quorate Version: \d+\.\d+\.\d+\netcd Version: 3\.7\.\d+\n/);
});

test("mistakes are refused by name, with etcd's codes, and leave nothing behind", async () => {
  const refused: [string[], number, RegExp][] = [
    [["--nmae=x"], 2, /flag provided but not defined: --nmae \(did you mean --name\?\)/],
    [["serve"], 2, /"serve" is not a valid flag/],
    [
      ["--listen-client-urls=http://example.org:2379", "--advertise-client-urls=http://a:1"],
      1,
      /expected IP in URL for binding/,
    ],
    [["--listen-peer-urls=http://localhost"], 2, /URL address does not have the form "host:port"/],
    [["--election-timeout=100"], 1, /should be at least as 5 times as/],
    [
      [
        "--cert-file=absent",
        "--key-file=absent",
        "--listen-client-urls=https://127.0.0.1:1",
        "--advertise-client-urls=https://a:1",
      ],
      1,
      /absent/,
    ],
    [
      [`--log-outputs=${join(absentPath(), "x.log")}`],
      1,
      /^quorate: --log-outputs: cannot open the log: ENOENT: [^\n]*\/quorate-absent-[^\n]*\/x\.log'\n$/,
    ],
    [
      [
        "--listen-client-urls=http://127.0.0.1:7",
        "--advertise-client-urls=http://a:7",
        "--listen-peer-urls=http://localhost:7",
      ],
      1,
      /--listen-client-urls and --listen-peer-urls both want to listen on http:\/\/127\.0\.0\.1:7: give one of them another port/,
    ],
    [
      ["--config-file=absent.yaml"],
      1,
      /cannot read the configuration file absent\.yaml: no such file or directory/,
    ],
    [
      ["--initial-cluster=other=http://localhost:2380"],
      1,
      /couldn't find local name \\?"default\\?" in the initial cluster configuration/,
    ],
    [
      ["--initial-cluster=default=http://localhost:1"],
      1,
      /--initial-cluster has default=http:\/\/localhost:1 but missing from/,
    ],
  ];
  for (const [args, code, message] of refused) {
    const result = await quorate(args);
    assert.equal(result.code, code, `${args.join(" ")}: ${result.stderr}`);
    assert.match(result.stderr, message);
  }
  const shadowed = await quorate(["--name=a"], { ETCD_NAME: "b" });
  assert.equal(shadowed.code, 1);
  assert.match(shadowed.stderr, /conflicting environment variable "ETCD_NAME"/);
  assert.deepEqual(readdirSync(scratch), []);
});

/** The content of every file below a directory. */
function fingerprint(dir: string): string {
  const hash = createHash("sha256");
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true }).sort((a, b) =>
    join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1,
  )) {
    hash.update(join(entry.parentPath, entry.name));
    if (entry.isFile()) hash.update(readFileSync(join(entry.parentPath, entry.name)));
  }
  return hash.digest("hex");
}

test("a data directory of etcd itself is recognised and left untouched", {
  skip: skipWithoutEtcd,
}, async () => {
  await withCluster({ executable: etcd!, size: 1 }, async (cluster) => {
    const member = cluster.members[0];
    await member.terminate();
    const { dataDir } = member.options;
    const before = fingerprint(dataDir);
    const result = await quorate([`--data-dir=${dataDir}`]);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /is a data directory of etcd itself .*run quorateutl adopt /);
    assert.equal(fingerprint(dataDir), before);
  });
});
