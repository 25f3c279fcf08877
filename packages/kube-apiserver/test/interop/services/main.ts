/** The command `./dev compare services`: addresses and ports of Services, beside kube-apiserver. */
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import {
  type Answer,
  areSame,
  comparisonOptions,
  keepAnswers,
  keptAnswers,
} from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { accessOf } from "../rest/exchange.ts";
import { play } from "./play.ts";

const HELP = `./dev compare services [OPTIONS]

Creates, changes and deletes Services on a new API server of ours, and compares the addresses and
ports that they are given, and what is refused, with kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, comparisonOptions("answers"));
  const { etcd, record } = values;
  const here = import.meta.dirname;
  const theirs =
    etcd === undefined ? keptAnswers<Answer>(here) : await withKubeApiserver(etcd, play);
  if (record) keepAnswers(here, theirs);
  await using api = await startApiServer();
  return areSame(await play(accessOf(api.kubeconfig)), theirs);
}

process.exitCode = (await run()) ? 0 : 1;
