/** The command `./dev compare policies`: kube-apiserver's admission policies beside ours. */

import { startApiServer } from "@quorate/kube-apiserver/node";
import {
  readArguments,
  switchOption,
  valueOption,
} from "../../../../../scripts/dev/command-line.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { accessOf } from "../rest/exchange.ts";
import { differencesFrom, keepAnswers, keptAnswers, record } from "./play.ts";

const HELP = `./dev compare policies [OPTIONS]

Creates ValidatingAdmissionPolicies and MutatingAdmissionPolicies, and objects that they judge, on a
new API server of ours, and compares the answers with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    etcd: valueOption(
      "an empty etcd: kube-apiserver (on PATH) is started on it, and compared with (default: its stored answers count)",
    ),
    record: switchOption("store kube-apiserver's answers for the test of the build"),
    only: valueOption("print only differences whose request contains TEXT", ""),
  });
  const { etcd, only } = values;
  const theirs = etcd === undefined ? keptAnswers() : await withKubeApiserver(etcd, record);
  if (values.record) {
    keepAnswers(theirs);
    console.log(`${theirs.length} answers stored`);
  }
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
