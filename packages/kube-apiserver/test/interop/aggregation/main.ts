/** The command `./dev compare aggregation`: other API servers, beside kube-apiserver. */
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import {
  type Answer,
  areSame,
  comparisonOptions,
  keepAnswers,
  keptAnswers,
} from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { play, withOurs } from "./play.ts";

const HELP = `./dev compare aggregation [OPTIONS]

Creates APIServices of another server on a new API server of ours, sends requests that go on to it,
and compares the answers with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, comparisonOptions("answers"));
  const { etcd, record } = values;
  const here = import.meta.dirname;
  const theirs =
    etcd === undefined ? keptAnswers<Answer>(here) : await withKubeApiserver(etcd, play);
  if (record) keepAnswers(here, theirs);
  return areSame(await withOurs(play), theirs);
}

process.exitCode = (await run()) ? 0 : 1;
