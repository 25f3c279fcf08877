/** The command `./dev compare policies`: kube-apiserver's admission policies beside ours. */

import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments, valueOption } from "../../../../../scripts/dev/command-line.ts";
import { comparisonOptions, keepAnswers, keptAnswers } from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { type ApiResponse, accessOf } from "../rest/exchange.ts";
import { differencesFrom, record } from "./play.ts";

const HELP = `./dev compare policies [OPTIONS]

Creates ValidatingAdmissionPolicies and MutatingAdmissionPolicies, and objects that they judge, on a
new API server of ours, and compares the answers with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    ...comparisonOptions("answers"),
    only: valueOption("print only differences whose request contains TEXT", ""),
  });
  const { etcd, only } = values;
  const here = import.meta.dirname;
  const theirs =
    etcd === undefined ? keptAnswers<ApiResponse>(here) : await withKubeApiserver(etcd, record);
  if (values.record) keepAnswers(here, theirs);
  await using api = await startApiServer();
  const differences = await differencesFrom(accessOf(api.kubeconfig), theirs);
  for (const { request, ours, theirs: other } of differences) {
    const shown = `${request.method} ${request.path} ${JSON.stringify(request.body ?? "")}`;
    if (!shown.includes(only)) continue;
    console.log(`\n${shown.slice(0, 600)}`);
    console.log(`  kube: ${JSON.stringify(other)}`);
    console.log(`  ours: ${JSON.stringify(ours)}`);
  }
  console.log(`\n${theirs.length} requests, ${differences.length} differences`);
  return differences.length === 0;
}

process.exitCode = (await run()) ? 0 : 1;
