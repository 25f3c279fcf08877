/**
 * A release with a Node that the operator has verified: what is compared, and what is refused.
 * @slow
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { givenNode } from "../../scripts/release/given-node.ts";
import { ownPlatform, platforms } from "../../scripts/release/platform.ts";
import { scratchDirectory } from "../support/scratch.ts";

const dir = scratchDirectory("quorate-given-node-");
const version = process.version.slice(1);
const skip = ownPlatform === undefined ? "there is no release for this platform" : false;
const said: string[] = [];
const say = (line: string): void => void said.push(line);

/**
 * An archive as nodejs.org's are, around the Node that runs this, and its line of SHASUMS256.txt.
 */
function archive(name: string): { file: string; line: string } {
  const top = join(dir, name);
  mkdirSync(join(top, "bin"), { recursive: true });
  copyFileSync(process.execPath, join(top, "bin/node"));
  writeFileSync(join(top, "LICENSE"), "Node's licence\n");
  const file = join(dir, `${name}.tar.gz`);
  execFileSync("tar", ["-cf", join(dir, `${name}.tar`), "-C", dir, name]);
  execFileSync("gzip", ["-1", join(dir, `${name}.tar`)]);
  rmSync(top, { recursive: true });
  return {
    file,
    line: `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${name}.tar.gz\n`,
  };
}

test("an archive is compared with the project's list, and its program and its licence are extracted", {
  skip,
}, () => {
  const platform = ownPlatform!;
  const name = `node-v${version}-${platform.name}`;
  const { file, line } = archive(name);
  const sums = join(dir, "SHASUMS256.txt");
  const list = (...lines: string[]): void => writeFileSync(sums, lines.join(""));
  const other = `${"0".repeat(64)}  node-v${version}-linux-ppc64le.tar.gz\n`;
  list(other, line);
  const { binary, licence } = givenNode(file, sums, platform, version, say);
  assert.equal(Buffer.compare(binary, readFileSync(process.execPath)), 0);
  assert.equal(Buffer.from(licence!).toString(), "Node's licence\n");
  assert.match(
    said.at(-1)!,
    /SHA-256 of the program [0-9a-f]{64}; its archive is what .*SHASUMS256\.txt says$/,
  );

  list(other);
  assert.throws(() => givenNode(file, sums, platform, version, say), /has no line for node-v/);
  list(line.replace(/^./, (digit) => (digit === "0" ? "1" : "0")));
  assert.throws(
    () => givenNode(file, sums, platform, version, say),
    /is not what .*SHASUMS256\.txt says: its SHA-256 is [0-9a-f]{64}/,
  );
  list(line);
  const elsewhere = platforms.find((one) => one !== platform)!;
  assert.throws(
    () => givenNode(file, sums, elsewhere, version, say),
    new RegExp(`holds no program for ${elsewhere.name}`),
  );
  assert.throws(() => givenNode(file, sums, platform, "26.0.999", say), /is not Node 26\.0\.999/);
  // Of another release under the name of this one.
  const renamed = join(dir, "node-v26.0.999-linux-x64.tar.gz");
  renameSync(file, renamed);
  assert.throws(
    () => givenNode(renamed, undefined, platform, "26.0.999", say),
    /cannot take bin\/node and LICENSE out of it/,
  );
});

test("a binary says its version, and is refused where it is another or none", { skip }, () => {
  const link = join(dir, "node");
  symlinkSync(process.execPath, link);
  assert.ok(givenNode(link, undefined, ownPlatform!, version, say).binary.length > 1_000_000);
  assert.match(said.at(-1)!, /compared with nothing here: --node-sums compares an archive$/);
  assert.throws(
    () => givenNode(link, undefined, ownPlatform!, "26.0.999", say),
    /is Node v.*, and the release is for v26\.0\.999/,
  );
  const text = join(dir, "text");
  writeFileSync(text, "#!/bin/sh\necho v26.0.999\n", { mode: 0o755 });
  assert.throws(
    () => givenNode(text, undefined, ownPlatform!, version, say),
    /holds no program for/,
  );
});

test("the command line: one platform, and sums only for an archive", () => {
  const release = (...args: string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, "../../scripts/release.ts"), ...args], {
      encoding: "utf8",
    });
  const several = release("--node", "x");
  assert.deepEqual([several.status, several.stdout], [2, ""]);
  assert.match(several.stderr, /--node is for one platform: name it with --platform/);
  const binary = release("--platform", "linux-x64", "--node", "x", "--node-sums", "y");
  assert.equal(binary.status, 2);
  assert.match(binary.stderr, /--node-sums compares an archive/);
});
