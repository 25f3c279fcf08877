/**
 * The command `./dev clients bugs`: published bugs of real operators, found by faults from seeds.
 * Each operator runs as a process, as it was released before and after its bug was mended. The
 * first build of each takes minutes. docs/evidence/controller-bugs.md has the results.
 *
 *     ./dev clients bugs
 *     ./dev clients bugs --only rabbitmq-782 --release unfixed --seed 3 --log
 */

import { setTimeout as delay } from "node:timers/promises";
import { chaosSettingsOf } from "@quorate/kube-apiserver";
import { readArguments, switchOption, valueOption } from "../../../../scripts/dev/command-line.ts";
import { BUGS, type Bug } from "./catalogue.ts";
import { Cluster } from "./cluster.ts";
import { type Built, built, type Operator, Process } from "./operators.ts";

const { values } = readArguments(
  "./dev clients bugs [OPTIONS]: published bugs of operators, found by faults from seeds",
  {
    only: valueOption("one bug by its name", ""),
    release: valueOption("unfixed or fixed", ""),
    seed: valueOption("this seed alone", ""),
    seeds: valueOption("try so many seeds", "10"),
    log: switchOption("show what the operator prints"),
  },
);

/** What went wrong in a run; undefined: nothing. */
async function run(
  bug: Bug,
  operator: Operator,
  made: Built,
  seed: number,
): Promise<string | undefined> {
  let crash: (() => void) | undefined;
  const settings = chaosSettingsOf(`seed=${seed},agent=${made.agent},${bug.chaos}`);
  await using cluster = await Cluster.start(settings, ({ fault, client, request, n, why }) => {
    if (fault !== "late event") console.log(`    ${fault}: ${n}. ${request} of ${client}: ${why}`);
    if (fault === "lost answer") crash?.();
  });
  await cluster.define(made.definition);
  const process = new Process(made, operator, cluster.api.kubeconfigPath, values.log);
  const start = async (): Promise<void> => {
    await process.kill();
    for (const kind of [
      "/apis/coordination.k8s.io/v1/namespaces/default/leases",
      "/api/v1/namespaces/default/configmaps",
    ])
      await cluster.remove(`${kind}/${bug.lock}`);
    process.start();
  };
  let crashing = Promise.resolve();
  crash = () => {
    crashing = crashing.then(start);
  };
  try {
    await start();
    return await bug.run({ cluster, process, restart: start, settle: () => crashing });
  } finally {
    await crashing;
    await process.kill();
    await delay(0);
  }
}

const wanted = values.seed === "" ? undefined : Number(values.seed);
const seeds =
  wanted === undefined ? Array.from({ length: Number(values.seeds) }, (_, at) => at + 1) : [wanted];
for (const bug of BUGS) {
  if (values.only !== "" && values.only !== bug.name) continue;
  /** The seeds that were needed; the fixed version gets the same. */
  let tried = seeds;
  for (const version of ["unfixed", "fixed"] as const) {
    if (values.release !== "" && values.release !== version) continue;
    const operator = bug[version];
    console.log(`${bug.name} (${bug.issue}), ${version}: ${operator.version}`);
    const made = built(operator);
    if (made === undefined) continue;
    for (const seed of tried) {
      const startedMs = performance.now();
      const wrong = await run(bug, operator, made, seed);
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
      console.log(`  seed ${seed}: ${wrong ?? "nothing is wrong"} (${seconds} s)`);
      if (wrong === undefined || version === "fixed") continue;
      tried = tried.slice(0, tried.indexOf(seed) + 1);
      break;
    }
  }
}
