/**
 * The command `./dev clients go`: programs of client-go and controller-runtime with the API
 * server. Needs Go and its module proxy; the first build takes minutes.
 *
 *     ./dev clients go --objects 50000
 *     ./dev clients go --checks informer,envtest
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments, valueOption } from "../../../../../scripts/dev/command-line.ts";
import { envtestAssets } from "../../envtest-assets.ts";

/** Runs a program to its end; the server in this process goes on. */
function run(command: string, args: readonly string[], cwd: string, env = {}): Promise<number> {
  const options = { cwd, env: { ...process.env, ...env }, stdio: "inherit" } as const;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, options);
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  });
}

const { values } = readArguments(
  "./dev clients go [OPTIONS]: programs of client-go and controller-runtime on the API server",
  {
    objects: valueOption("how many objects", "1000"),
    checks: valueOption("only these, by commas", ""),
  },
);
const directory = mkdtempSync(join(tmpdir(), "clients-"));
try {
  const program = join(directory, "clients");
  const source = join(import.meta.dirname, "clients");
  const built = await run("go", ["build", "-o", program, "."], source, { GOFLAGS: "-p=1" });
  if (built !== 0) throw new Error("the programs do not build");
  await using api = await startApiServer({ dataDir: join(directory, "data") });
  const args = ["-kubeconfig", api.kubeconfigPath, "-objects", values.objects];
  process.exitCode = await run(program, [...args, "-checks", values.checks], directory, {
    KUBEBUILDER_ASSETS: envtestAssets(),
  });
} finally {
  rmSync(directory, { recursive: true });
}
