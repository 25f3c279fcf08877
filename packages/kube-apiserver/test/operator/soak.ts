/** `./dev soak operator`: the whole walk, in namespaces of its own. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, switchOption } from "../../../../scripts/dev/command-line.ts";
import { endsWithUs } from "../../../../test/support/children.ts";
import { ISOLATE, whyNoSandboxes } from "../../../../test/support/sandbox.ts";

const { values } = readArguments(
  "./dev soak operator [OPTIONS]: a cluster's life under the operator, with a load that is judged",
  {
    short: switchOption("only what the tests walk"),
    kill: switchOption("kill the operator in each step"),
    seed: { type: "string", default: "1", describe: "of the moments at which it is killed" },
    kubernetes: switchOption(
      "on kube-apiserver, which must be on PATH, in place of our API server",
    ),
    keep: switchOption("keep the directory with logs and disks"),
  },
  "",
  process.argv.slice(2),
);
const why = whyNoSandboxes();
if (why !== false) throw new Error(why);
const dir = mkdtempSync(join(tmpdir(), "quorate-operator-"));
const walk = join(import.meta.dirname, "walk.ts");
const child = spawn(
  "unshare",
  [
    ...ISOLATE,
    process.execPath,
    walk,
    join(dir, "run"),
    values.short ? "short" : "whole",
    values.kubernetes ? "kubernetes" : "ours",
    ...(values.kill ? [values.seed] : []),
  ],
  { stdio: "inherit" },
);
endsWithUs(child);
process.exitCode = await new Promise<number>((resolve) => {
  child.once("exit", (code) => resolve(code ?? 1));
});
if (values.keep || process.exitCode !== 0) console.log(`files are in ${dir}`);
else rmSync(dir, { recursive: true, force: true });
