/**
 * The command `./dev clients suites`: tests that others wrote, unchanged, with the API server in
 * place of kube-apiserver and etcd. Their modules come from Go's module proxy; the first build
 * takes minutes. docs/evidence/kubernetes-suites.md has the results.
 *
 *     ./dev clients suites --only gateway-api
 *     ./dev clients suites --only jobset --measure
 *     ./dev clients suites --assets /usr/local/kubebuilder/bin     with kube-apiserver
 */

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { loadAll } from "js-yaml";
import {
  readArguments,
  switchOption,
  valueOption,
} from "../../../../../scripts/dev/command-line.ts";
import { envtestAssets } from "../../envtest-assets.ts";
import { moduleCopy } from "./modules.ts";
import { measureServers, type ServerUsage } from "./server-usage.ts";
import { SUITES, type Suite } from "./suite-table.ts";

function shownUsage(usage: ServerUsage | undefined): string {
  if (usage === undefined) return "";
  const { wallMs, processorMs, peakBytes } = usage;
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const memory = `${Math.round(peakBytes / 2 ** 20)} MiB`;
  return `; servers: ${seconds(wallMs)}, ${seconds(processorMs)} of processor, ${memory} at most`;
}

/** The counts of a run of `go test -v`: its own tests, and Ginkgo's. */
function countsOf(text: string): string {
  const ginkgo = [...text.matchAll(/Ran (\d+) of \d+ Specs.*?\n.*?(\d+) Passed.*?(\d+) Failed/gs)];
  if (ginkgo.length > 0)
    return ginkgo.map(([, ran, passed]) => `${passed} of ${ran} specs`).join(", ");
  const passed = text.match(/^\s*--- PASS/gm)?.length ?? 0;
  const failed = text.match(/^\s*--- FAIL/gm)?.length ?? 0;
  return `${passed} of ${passed + failed} tests`;
}

const { values } = readArguments(
  "./dev clients suites [OPTIONS]: tests of other projects on the API server",
  {
    only: valueOption("one suite by its name", ""),
    assets: valueOption("directory with etcd and kube-apiserver", envtestAssets()),
    log: switchOption("show what the tests print"),
    measure: switchOption("say what the servers used (Linux)"),
  },
);

async function run(suite: Suite, directory: string): Promise<void> {
  const version = suite.module.split("@")[1];
  const copy = moduleCopy(suite.module, directory);
  if (copy === undefined) {
    console.log(`${suite.name}: skipped: Go or its module proxy does not have ${suite.module}`);
    return;
  }
  if (suite.prepare?.(copy) === false) {
    console.log(`${suite.name}: skipped: its files cannot be made`);
    return;
  }
  const env: Record<string, string> = { KUBEBUILDER_ASSETS: values.assets, ...suite.env };
  // cert-manager's framework looks for each program by itself.
  for (const program of ["etcd", "kube-apiserver", "kubectl"])
    env[`TEST_ASSET_${program.replace("-", "_").toUpperCase()}`] = join(values.assets, program);
  const api = suite.definitions === undefined ? undefined : await startApiServer();
  try {
    if (api !== undefined) {
      env["KUBECONFIG"] = api.kubeconfigPath;
      const folder = join(copy, suite.definitions ?? "");
      for (const name of readdirSync(folder).filter((one) => one.endsWith(".yaml")))
        for (const body of loadAll(readFileSync(join(folder, name), "utf8")) as {
          kind?: string;
        }[]) {
          if (body?.kind !== "CustomResourceDefinition") continue;
          const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
          const made = await api.request(path, { method: "POST", body });
          if (made.status !== 201) console.log(`${suite.name}: ${name}: ${made.body.message}`);
        }
    }
    for (const one of suite.packages) {
      const usage = values.measure ? measureServers() : undefined;
      const { text } = await test(one, join(copy, suite.directory ?? ""), env, suite.tags ?? "");
      if (values.log) console.log(text);
      console.log(`${suite.name} ${version} ${one}: ${countsOf(text)}${shownUsage(usage?.stop())}`);
    }
  } finally {
    await api?.stop();
  }
}

/** Runs the tests of a package; the server in this process goes on meanwhile. */
async function test(
  name: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
  tags: string,
): Promise<{ readonly text: string }> {
  return await new Promise<{ text: string }>((resolve, reject) => {
    const child = spawn("go", ["test", "-count=1", "-v", "-timeout=20m", `-tags=${tags}`, name], {
      cwd,
      env: { ...process.env, GOFLAGS: "-mod=mod -p=1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    const take = (chunk: Buffer): void => {
      text += chunk.toString();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("error", reject);
    child.once("close", () => resolve({ text }));
  });
}

const directory = mkdtempSync(join(tmpdir(), "suites-"));
try {
  for (const suite of SUITES)
    if (values.only === "" || values.only === suite.name) await run(suite, directory);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
