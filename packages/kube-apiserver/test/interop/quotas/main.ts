/** The command `./dev compare quotas`: ResourceQuotas, beside kube-apiserver. */
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

const HELP = `./dev compare quotas [OPTIONS]

Creates objects under ResourceQuotas on a new API server of ours, and compares what is refused and what
the quotas say is used with kube-apiserver 1.36, both without controllers.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, comparisonOptions("answers"));
  const { etcd, record } = values;
  const here = import.meta.dirname;
  const theirs =
    etcd === undefined ? keptAnswers<Answer>(here) : await withKubeApiserver(etcd, play);
  if (record) keepAnswers(here, theirs);
  await using api = await startApiServer({ controllers: [] });
  return areSame(await play(accessOf(api.kubeconfig)), theirs);
}

process.exitCode = (await run()) ? 0 : 1;
