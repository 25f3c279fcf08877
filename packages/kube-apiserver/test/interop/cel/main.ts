/**
 * The command `./dev compare cel`: expressions of cel-spec's conformance files and of Kubernetes'
 * tests, evaluated here and by Kubernetes' own environment. Compares types, values, errors, and the
 * costs at run time and as estimated. Needs Go and its module proxy.
 *
 *     ./dev compare cel
 *     ./dev compare cel --all        shows each difference
 *     ./dev compare cel --write      renews kubernetes-1.36.jsonl, which a test replays
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, switchOption } from "../../../../../scripts/dev/command-line.ts";
import { difference, KNOWN, ours, type Result } from "./compare.ts";
import { celCases, ownCases } from "./expressions.ts";

const MODULES = ["cel.dev/expr@v0.25.1", "k8s.io/apiserver@v0.36.3"];

function go(args: readonly string[], cwd: string): string | undefined {
  const env = { ...process.env, GOFLAGS: "-p=1" };
  const { status, stdout, error } = spawnSync("go", args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return error !== undefined || status !== 0 ? undefined : stdout.toString().trim();
}

const { values } = readArguments(
  "./dev compare cel [OPTIONS]: expressions beside Kubernetes' own CEL environment",
  {
    all: switchOption("show each difference"),
    write: switchOption("renew the kept results"),
  },
);
const source = join(import.meta.dirname, "../go/cel");
const modules = go(["env", "GOMODCACHE"], source);
if (modules === undefined || go(["mod", "download", ...MODULES], source) === undefined)
  console.log("skipped: Go or its module proxy is not there");
else {
  const directory = mkdtempSync(join(tmpdir(), "cel-"));
  try {
    const program = process.env["CEL_REFERENCE"] ?? join(directory, "cel");
    if (process.env["CEL_REFERENCE"] === undefined)
      if (go(["build", "-o", program, "."], source) === undefined)
        throw new Error("the reference does not build");
    const cases = celCases(modules) ?? [];
    const input = cases.map((each) => JSON.stringify(each)).join("\n");
    const { stdout } = spawnSync(program, { input, maxBuffer: 1 << 28 });
    const theirs = stdout
      .toString()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Result);
    if (values.write) {
      const kept = theirs.slice(-ownCases().length).map((one) => JSON.stringify(one));
      writeFileSync(join(import.meta.dirname, "kubernetes-1.36.jsonl"), `${kept.join("\n")}\n`);
    }
    const found = new Map<string, number>();
    for (const [i, one] of cases.entries()) {
      const mine = ours(one);
      const isKnown = KNOWN.some((pattern) => pattern.test(one.expr));
      const other = difference(mine, theirs[i] as Result);
      const what = other === undefined ? "equal" : isKnown ? "known" : other;
      found.set(what, (found.get(what) ?? 0) + 1);
      if (values.all && what !== "equal") {
        console.log(`${what}: ${one.expr}`);
        console.log(`   ${JSON.stringify(mine)}\n   ${JSON.stringify(theirs[i])}`);
      }
    }
    console.log(`${cases.length} expressions:`, Object.fromEntries(found));
    const expected = (found.get("equal") ?? 0) + (found.get("known") ?? 0);
    process.exitCode = expected === cases.length ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true });
  }
}
