/** The command `./dev compare routes`: kube-apiserver's routes beside ours, pair by pair. */

import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments, valueOption } from "../../../../../scripts/dev/command-line.ts";
import { comparisonOptions } from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { accessOf } from "../rest/exchange.ts";
import { keepAnswers, keptAnswers, routeDifferences } from "./kept.ts";
import { routeAnswers } from "./play.ts";

const HELP = `./dev compare routes [OPTIONS]

Sends each form of path with each method, as three users, to a new API server of ours, and compares
the answers with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    ...comparisonOptions("answers"),
    only: valueOption("only paths that contain TEXT", ""),
  });
  const { etcd, only } = values;
  const theirs =
    etcd === undefined
      ? keptAnswers()
      : await withKubeApiserver(etcd, (access) => routeAnswers(access, only));
  if (values.record) {
    keepAnswers(theirs);
    console.log(`${theirs.length} rows stored`);
  }
  await using api = await startApiServer();
  const ours = await routeAnswers(accessOf(api.kubeconfig), only);
  const differences = routeDifferences(ours, theirs);
  for (const { request, user, theirs: other, ours: answer } of differences)
    console.log(`\n${user}: ${request}\n  kube: ${other}\n  ours: ${answer}`);
  console.log(`\n${ours.length} rows, ${differences.length} differences`);
  return differences.length === 0;
}

process.exitCode = (await run()) ? 0 : 1;
