/** `./dev check removal`: tests in a copy of this repository without packages/kube-apiserver. */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { readArguments } from "../../scripts/dev/command-line.ts";
import { copyWithout } from "./copy.ts";

const { positionals } = readArguments(
  `./dev check removal [WHAT..]: tests in a copy of this repository without packages/kube-apiserver

Runs ./dev test WHAT.. there: all tests, or those of packages, directories and files.`,
  {},
  "WHAT",
);

const copy = copyWithout();
try {
  const { status } = spawnSync("./dev", ["test", ...positionals], { cwd: copy, stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}
