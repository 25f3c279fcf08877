/** The command `./dev compare access`: webhooks for tokens and access, beside kube-apiserver. */
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import { areSame, comparisonOptions, keepAnswers, keptAnswers } from "../comparison.ts";
import { ourAnswers, type PlayedAnswer, theirAnswers } from "./play.ts";

const HELP = `./dev compare access [OPTIONS]

Starts a webhook that knows tokens and says who may do what, asks a new API server of ours, and
compares the answers, and what the webhook was asked, with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, comparisonOptions("answers"));
  const { etcd, record } = values;
  const here = import.meta.dirname;
  const theirs = etcd === undefined ? keptAnswers<PlayedAnswer>(here) : await theirAnswers(etcd);
  if (record) keepAnswers(here, theirs);
  const whole = (answers: readonly PlayedAnswer[]) =>
    answers.map(({ request, response, asked }) => ({ request, response: { ...response, asked } }));
  return areSame(whole(await ourAnswers()), whole(theirs));
}

process.exitCode = (await run()) ? 0 : 1;
