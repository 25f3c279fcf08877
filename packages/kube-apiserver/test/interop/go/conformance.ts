/**
 * The command `./dev clients conformance`: Kubernetes' conformance tests of API machinery, auth, cli
 * and instrumentation, unchanged. Kubernetes comes from Go's module proxy; its build takes half an
 * hour. docs/evidence/kubernetes-suites.md has the results.
 *
 *     ./dev clients conformance --e2e e2e.test --kubectl kubectl
 *     ./dev clients conformance --only Watchers --log
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApiServer } from "@quorate/kube-apiserver/node";
import {
  readArguments,
  switchOption,
  valueOption,
} from "../../../../../scripts/dev/command-line.ts";
import { DEFAULT_PLUGINS } from "../../../src/admission/plugin-names.ts";
import { go, moduleCopy } from "./modules.ts";

const MODULE = "k8s.io/kubernetes@v1.36.3";
const NAME =
  /^\s*\S+\.go:\d+: (\[sig-(?:api-machinery|auth|cli|instrumentation)\] .*\[Conformance\].*)$/;

const { values } = readArguments(
  "./dev clients conformance [OPTIONS]: Kubernetes' conformance tests that need no nodes",
  {
    e2e: valueOption("e2e.test of Kubernetes 1.36 (default: built)", ""),
    kubectl: valueOption("kubectl of Kubernetes 1.36 (default: built)", ""),
    kubeconfig: valueOption("another server (default: one of ours, with all controllers)", ""),
    only: valueOption("only tests whose names contain TEXT", ""),
    nodes: switchOption("also those that need nodes"),
    parallel: valueOption("so many at a time; those that say Serial run alone", "2"),
    seconds: valueOption(
      "how long one may take; one waits for a compaction, up to ten minutes",
      "900",
    ),
    log: switchOption("show what the tests print"),
  },
);

interface Programs {
  readonly e2e: string;
  readonly kubectl: string;
}

/** Those of the command line, or built ones. */
function programsIn(directory: string): Programs {
  if (values.e2e !== "" && values.kubectl !== "") return values;
  const copy = moduleCopy(MODULE, directory);
  if (copy === undefined) throw new Error(`Go or its module proxy does not have ${MODULE}`);
  const built = { e2e: join(directory, "e2e.test"), kubectl: join(directory, "kubectl") };
  const env = { GOWORK: "off" };
  const flags = ["-ldflags", "-X k8s.io/component-base/version.gitVersion=v1.36.3"];
  const isBuilt =
    go(["test", "-c", ...flags, "-o", built.e2e, "./test/e2e"], copy, env).ok &&
    go(["build", ...flags, "-o", built.kubectl, "./cmd/kubectl"], copy, env).ok;
  if (!isBuilt) throw new Error("Kubernetes does not build");
  return built;
}

function namesOf({ e2e }: Programs): string[] {
  const { stdout } = spawnSync(e2e, ["--list-tests"], { maxBuffer: 1 << 26 });
  const names = stdout
    .toString()
    .split("\n")
    .map((line) => NAME.exec(line)?.[1] ?? "");
  return names.filter((name) => name !== "" && name.includes(values.only)).sort();
}

/** What a test waits for that only nodes give; undefined for none. */
function waitsFor(name: string): string | undefined {
  const lines = readFileSync(join(import.meta.dirname, "needs-nodes.txt"), "utf8").split("\n");
  const pairs = lines.filter((line) => line.startsWith("[")).map((line) => line.split(": "));
  return pairs.find(([begin = ""]) => name.startsWith(begin))?.[1];
}

/** Runs one test, in a process of its own. Resolves with whether it passed. */
async function passes(name: string, { e2e, kubectl }: Programs, kubeconfig: string) {
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    // The suite begins with nodes; these let it go on without.
    "--num-nodes=1",
    "--allowed-not-ready-nodes=-1",
    "--provider=skeleton",
    `--ginkgo.timeout=${values.seconds}s`,
    "--ginkgo.no-color",
    "--ginkgo.silence-skips",
    `--ginkgo.focus=${name.replaceAll(/[[\]().*+?^$|\\{}]/g, "\\$&")}$`,
  ];
  const child = spawn(e2e, args, { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const take = (chunk: Buffer): void => {
    text += chunk.toString();
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  const isGood = /Ran 1 of \d+ Specs/.test(text) && /1 Passed \| 0 Failed/.test(text);
  if (values.log || !isGood) console.log(text);
  return isGood;
}

async function run(directory: string): Promise<boolean> {
  const programs = programsIn(directory);
  const all = namesOf(programs);
  const names = values.nodes ? all : all.filter((name) => waitsFor(name) === undefined);
  await using api =
    values.kubeconfig === ""
      ? await startApiServer({ plugins: new Set(DEFAULT_PLUGINS) })
      : undefined;
  const kubeconfig = api?.kubeconfigPath ?? values.kubeconfig;
  const counts = new Map<string, { passed: number; ran: number }>();
  const judge = async (name: string): Promise<void> => {
    const isGood = await passes(name, programs, kubeconfig);
    console.log(`${isGood ? "passed" : "FAILED"} ${name}`);
    const [group = ""] = name.split(" ", 1);
    const { passed = 0, ran = 0 } = counts.get(group) ?? {};
    counts.set(group, { passed: passed + Number(isGood), ran: ran + 1 });
  };
  const isSerial = (name: string): boolean => name.includes("[Serial]");
  const waiting = names.filter((name) => !isSerial(name));
  const work = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await judge(name);
  };
  await Promise.all(Array.from({ length: Number(values.parallel) }, work));
  for (const name of names.filter(isSerial)) await judge(name);
  for (const [group, { passed, ran }] of counts) console.log(`${group}: ${passed} of ${ran}`);
  console.log(`${names.length} of ${all.length} tests ran; the others need nodes`);
  return [...counts.values()].every(({ passed, ran }) => passed === ran);
}

const directory = mkdtempSync(join(tmpdir(), "conformance-"));
try {
  process.exitCode = (await run(directory)) ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
