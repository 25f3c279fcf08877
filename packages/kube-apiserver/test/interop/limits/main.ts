/** The command `./dev compare limits`: LimitRanges, beside kube-apiserver. */
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

const HELP = `./dev compare limits [OPTIONS]

Creates LimitRanges, pods and claims on a new API server of ours, and compares what is set and what
is refused with kube-apiserver 1.36.`;

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
