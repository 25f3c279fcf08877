/** The command `./dev compare kube-api`: kube-apiserver's responses beside ours. */

import { readFileSync } from "node:fs";
import { startApiServer } from "@quorate/kube-apiserver/node";
import {
  readArguments,
  switchOption,
  valueOption,
} from "../../../../../scripts/dev/command-line.ts";
import { keepAnswers, keptAnswers } from "../comparison.ts";
import { differencesOf, responsesOf } from "./compare.ts";
import { type ApiResponse, accessOf } from "./exchange.ts";
import { randomised, steps } from "./requests.ts";

const HELP = `./dev compare kube-api [OPTIONS]

Sends about 200 requests to a new API server of ours, and compares statuses, warnings and bodies
with those of kube-apiserver 1.36.`;
const MAX_SHOWN_CHARS = 3000;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    kubeconfig: valueOption(
      "send them to a new kube-apiserver too (default: its stored responses count)",
    ),
    random: valueOption("random requests instead, to both servers (needs --kubeconfig)"),
    count: valueOption("how many of them", "2000"),
    record: switchOption("store kube-apiserver's responses for the test of the build"),
    only: valueOption("print only differences whose request contains TEXT", ""),
  });
  const { random } = values;
  const all = random === undefined ? steps() : randomised(Number(random), Number(values.count));
  let theirs = values.record ? [] : keptAnswers<ApiResponse>(import.meta.dirname);
  if (values.kubeconfig !== undefined) {
    const access = accessOf(readFileSync(values.kubeconfig, "utf8"));
    theirs = (await responsesOf(access, all)).map(({ response }) => response);
  }
  if (values.record) {
    keepAnswers(import.meta.dirname, theirs);
    return true;
  }
  await using api = await startApiServer();
  const ours = await responsesOf(accessOf(api.kubeconfig), all);
  const differences = differencesOf(ours, theirs);
  for (const { request, ours: response, theirs: other } of differences) {
    const shown = `${request.method} ${request.path} ${JSON.stringify(request.body ?? "")}`;
    if (!shown.includes(values.only)) continue;
    console.log(`\n${shown.slice(0, 300)}`);
    console.log(`  kube: ${JSON.stringify(other).slice(0, MAX_SHOWN_CHARS)}`);
    console.log(`  ours: ${JSON.stringify(response).slice(0, MAX_SHOWN_CHARS)}`);
  }
  console.log(`\n${ours.length} requests, ${differences.length} differences`);
  return differences.length === 0;
}

process.exitCode = (await run()) ? 0 : 1;
