/** The command `./dev compare validation`: what kube-apiserver refuses, and what we do. */
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments, valueOption } from "../../../../../scripts/dev/command-line.ts";
import { comparisonOptions, keepAnswers } from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { accessOf } from "../rest/exchange.ts";
import { answersOf, differencesOf, kubeAnswers } from "./play.ts";

const HELP = `./dev compare validation [OPTIONS]

Sends about a thousand objects of built-in kinds, good and bad, to a new API server of ours, and
compares statuses and causes with those of kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    ...comparisonOptions("answers"),
    only: valueOption("only cases that contain TEXT", ""),
  });
  const { etcd, only } = values;
  const more = () => ["--disable-admission-plugins=ServiceAccount", "--allow-privileged"];
  const theirs =
    etcd === undefined
      ? kubeAnswers()
      : await withKubeApiserver(etcd, (access) => answersOf(access), more);
  if (values.record) keepAnswers(import.meta.dirname, theirs);
  await using api = await startApiServer({ controllers: [] });
  const ours = await answersOf(accessOf(api.kubeconfig), only);
  const differences = differencesOf(ours, theirs);
  for (const { ours: one, theirs: other } of differences) {
    console.log(`\n${one.case.slice(0, 300)}`);
    console.log(`  kube: ${other?.status} ${JSON.stringify(other?.causes)}`);
    console.log(`  ours: ${one.status} ${JSON.stringify(one.causes)}`);
  }
  const count = (answers: readonly { readonly case: string }[]): Map<string, number> =>
    answers.reduce((counts, { case: name }) => {
      const [resource = ""] = name.split(" ");
      return counts.set(resource, (counts.get(resource) ?? 0) + 1);
    }, new Map<string, number>());
  const different = count(differences.map(({ ours: one }) => one));
  console.log("\n| kind | equal | different |\n|---|---|---|");
  for (const [resource, total] of count(ours)) {
    const others = different.get(resource) ?? 0;
    console.log(`| ${resource} | ${total - others} | ${others} |`);
  }
  console.log(`\n${ours.length} cases, ${differences.length} differences`);
  return differences.length === 0;
}

process.exitCode = (await run()) ? 0 : 1;
