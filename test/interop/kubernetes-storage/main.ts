/**
 * The command `./dev clients storage`: Kubernetes' own tests of its storage layer, on members of ours.
 * The module is copied, and the file by which its tests start an etcd is replaced
 * (storage/testserver.go). Needs Go and its module proxy.
 *
 *     ./dev clients storage --packages pkg/storage/etcd3 --run TestWatch
 */

import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { readArguments, valueOption } from "../../../scripts/dev/command-line.ts";

const LIBRARY = "k8s.io/apiserver";
const VERSION = "v0.36.3";
const { values } = readArguments(
  "./dev clients storage [OPTIONS]: Kubernetes' own tests of its storage layer, on members of ours",
  {
    packages: valueOption(
      "packages of the library, by commas",
      "pkg/storage/etcd3,pkg/storage/cacher,pkg/storage/storagebackend/factory",
    ),
    run: valueOption("tests, as go test's -run", "."),
    skip: valueOption("as go test's -skip", "^$"),
    member: valueOption(
      "the program of the member",
      join(import.meta.dirname, "../../../bin/quorate.js"),
    ),
  },
);

/** One line of `go test -json`. */
interface TestEvent {
  readonly Action: string;
  readonly Package: string;
  readonly Test?: string;
  readonly Output?: string;
}

/** Runs go; `line` gets what it writes. Resolves with the exit code. */
async function go(
  cwd: string,
  args: readonly string[],
  line: (text: string) => void,
): Promise<number> {
  const env = { ...process.env, GOFLAGS: "-p=1", QUORATE_TEST_MEMBER: values.member };
  const child = spawn("go", args, { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  const code = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve(status ?? 1));
  });
  for await (const text of createInterface({ input: child.stdout })) line(text);
  return code;
}

/** Copies the module to `directory`, with our file in it. */
async function copyLibrary(directory: string): Promise<void> {
  const lines: string[] = [];
  const args = ["mod", "download", "-json", `${LIBRARY}@${VERSION}`];
  const code = await go(tmpdir(), args, (text) => lines.push(text));
  if (code !== 0) throw new Error(`${LIBRARY} is not available`);
  const { Dir } = JSON.parse(lines.join("\n")) as { Dir: string };
  cpSync(Dir, directory, { recursive: true });
  // The cache of modules is read-only, its directories too.
  const writable = (path: string): void => {
    chmodSync(path, 0o755);
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) writable(join(path, entry.name));
  };
  writable(directory);
  const replaced = join(directory, "pkg/storage/etcd3/testserver/test_server.go");
  rmSync(replaced);
  copyFileSync(join(import.meta.dirname, "testserver.go"), replaced);
}

const directory = mkdtempSync(join(tmpdir(), "storage-go-"));
try {
  const library = join(directory, "apiserver");
  await copyLibrary(library);
  const outputs = new Map<string, string[]>();
  const counts = new Map<string, { passed: number; failed: string[]; skipped: string[] }>();
  const event = ({ Action, Package, Test, Output }: TestEvent): void => {
    // Subtests count with their test.
    if (Test === undefined || Test.includes("/")) {
      if (Output !== undefined) outputs.get(`${Package} ${Test?.split("/")[0]}`)?.push(Output);
      return;
    }
    const key = `${Package} ${Test}`;
    const count = counts.get(Package) ?? { passed: 0, failed: [], skipped: [] };
    counts.set(Package, count);
    if (Action === "run") outputs.set(key, []);
    else if (Action === "output") outputs.get(key)?.push(Output ?? "");
    else if (Action === "pass") count.passed++;
    else if (Action === "skip") count.skipped.push(Test);
    else if (Action === "fail") {
      count.failed.push(Test);
      console.log(`FAIL ${key}\n${outputs.get(key)!.join("")}`);
    }
    if (Action === "pass" || Action === "skip" || Action === "fail") outputs.delete(key);
  };
  const packages = values.packages.split(",").map((name) => `${LIBRARY}/${name}`);
  const args = ["-json", "-count=1", "-parallel=4", "-timeout=30m"];
  const code = await go(
    library,
    ["test", ...args, `-run=${values.run}`, `-skip=${values.skip}`, ...packages],
    (text) => {
      if (text.startsWith("{")) event(JSON.parse(text) as TestEvent);
      else console.log(text);
    },
  );
  for (const [name, { passed, failed, skipped }] of counts) {
    console.log(`${name}: ${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
    for (const test of failed) console.log(`  failed: ${test}`);
    for (const test of skipped) console.log(`  skipped: ${test}`);
  }
  process.exitCode = code;
} finally {
  rmSync(directory, { recursive: true });
}
