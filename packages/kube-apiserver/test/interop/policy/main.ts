/** The command `./dev compare policy`: decisions and refusals of kube-apiserver beside ours. */

import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments, valueOption } from "../../../../../scripts/dev/command-line.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { type ApiAccess, type ApiResponse, accessOf, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";
import { policySteps } from "./requests.ts";
import type { PolicyStep } from "./steps.ts";

const HELP = `./dev compare policy [OPTIONS]

Sends requests about permissions, tokens and webhooks to a new kube-apiserver (on PATH) and to a new
API server of ours, and compares statuses, warnings and bodies.`;
const MAX_SHOWN_CHARS = 100_000;

async function play(access: ApiAccess): Promise<ApiResponse[]> {
  const responses: ApiResponse[] = [];
  for (const { pauseMs = 0, ...request } of policySteps()) {
    responses.push(withoutToken(normalised(await exchange(access, request))));
    await delay(pauseMs);
  }
  return responses;
}

/** Tokens and keys differ. */
function withoutToken(response: ApiResponse): ApiResponse {
  const text = JSON.stringify(response)
    .replace(/"token":"[^"]{40,}"/g, '"token":"<token>"')
    .replace(/"expirationTimestamp":"[^"]+"/g, '"expirationTimestamp":"<time>"')
    .replace(/127\.0\.0\.1:\d{4,}/g, "<address>");
  return JSON.parse(text) as ApiResponse;
}

function show(step: PolicyStep, theirs: ApiResponse, ours: ApiResponse, only: string): boolean {
  if (isDeepStrictEqual(theirs, ours)) return true;
  const { method, path, body = "", headers = {} } = step;
  const shown = `${method} ${path} ${JSON.stringify(body)} ${JSON.stringify(headers)}`;
  if (!shown.includes(only)) return false;
  console.log(`\n${shown.slice(0, 400)}`);
  console.log(`  kube: ${JSON.stringify(theirs).slice(0, MAX_SHOWN_CHARS)}`);
  console.log(`  ours: ${JSON.stringify(ours).slice(0, MAX_SHOWN_CHARS)}`);
  return false;
}

const { values } = readArguments(HELP, {
  etcd: valueOption("an empty etcd or member for kube-apiserver", "http://127.0.0.1:2379"),
  keep: valueOption("store kube-apiserver's responses"),
  kept: valueOption("compare with stored responses instead"),
  only: valueOption("print only differences whose request contains TEXT", ""),
});

async function run(): Promise<void> {
  const { etcd, keep, kept, only } = values;
  let theirs: ApiResponse[] = [];
  if (kept !== undefined) theirs = JSON.parse(readFileSync(kept, "utf8")) as ApiResponse[];
  else {
    theirs = await withKubeApiserver(etcd, play);
  }
  if (keep !== undefined) writeFileSync(keep, JSON.stringify(theirs));
  await using api = await startApiServer({});
  const ours = await play(accessOf(api.kubeconfig));
  const equal = policySteps().filter((step, i) => show(step, theirs[i], ours[i], only));
  console.log(`\n${ours.length} requests, ${ours.length - equal.length} differences`);
}

await run();
