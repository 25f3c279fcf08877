/** The command `./dev compare gateway`: the same requests to the gateways of etcd and Quorate. */

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments, switchOption, valueOption } from "../../../scripts/dev/command-line.ts";
import { findProgram, quorate } from "../../support/executables.ts";
import { differencesOf, responsesOf, type SeenDifference, startMember } from "./compare.ts";
import type { GatewayResponse } from "./exchange.ts";
import { KEPT_COUNT, KEPT_SEED } from "./kept.ts";
import type { GatewayRequest } from "./request.ts";
import { requestsOf } from "./requests.ts";

const HELP = `./dev compare gateway [OPTIONS]

Sends the same random requests to the JSON gateways of etcd 3.7 (ETCD, or etcd on the PATH) and
Quorate, one member each, and compares statuses, headers and bodies.`;
const MAX_SHOWN = 40;
const MAX_SHOWN_CHARS = 600;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    seed: valueOption("the first seed (default: random)"),
    count: valueOption("random requests of each seed, after those of the script", "1000"),
    rounds: valueOption("seeds, each with new members", "1"),
    record: switchOption("store etcd's responses for the test of the build"),
    only: valueOption("print only differences whose path contains TEXT", ""),
  });
  const path = process.env["ETCD"] ?? findProgram("etcd");
  const version = path && spawnSync(path, ["--version"], { encoding: "utf8" }).stdout;
  if (!path || !/etcd Version: 3\.7\./.test(version ?? ""))
    throw new Error("needs etcd 3.7: set ETCD to its path");
  const etcd = { name: "etcd", command: [path] } as const;
  if (values.record) {
    const responses = await onMember(etcd, requestsOf(KEPT_SEED, KEPT_COUNT));
    const lines = responses.map((one) => JSON.stringify(one));
    writeFileSync(join(import.meta.dirname, "etcd-3.7.jsonl"), `${lines.join("\n")}\n`);
    console.log(`${responses.length} responses stored`);
    return true;
  }
  const first = Number(values.seed ?? Math.ceil(Math.random() * 1e9));
  let isEqual = true;
  for (let seed = first; seed < first + Number(values.rounds); seed++) {
    const requests = requestsOf(seed, Number(values.count));
    const theirs = await onMember(etcd, requests);
    const ours = await onMember(quorate, requests, theirs);
    const { seen, listed } = differencesOf(requests, theirs, ours);
    console.log(`seed ${seed}: ${requests.length} requests, ${seen.length} differences`);
    for (const [reason, times] of listed) console.log(`  as listed, ${times} times: ${reason}`);
    const shown = seen.filter(({ request }) => request.path.includes(values.only));
    for (const one of shown.slice(0, MAX_SHOWN)) show(one);
    if (seen.length > 0) isEqual = false;
  }
  return isEqual;
}

async function onMember(
  executable: Parameters<typeof startMember>[0],
  requests: readonly GatewayRequest[],
  expected: readonly GatewayResponse[] = [],
): Promise<GatewayResponse[]> {
  const cluster = await startMember(executable);
  try {
    return await responsesOf(cluster.members[0].clientAddress, requests, expected);
  } finally {
    await cluster.destroy();
  }
}

function show({ request, etcd, ours }: SeenDifference): void {
  const cut = (value: unknown): string => JSON.stringify(value).slice(0, MAX_SHOWN_CHARS);
  console.log(`\n${request.method} ${request.path} ${JSON.stringify(request.headers)}`);
  console.log(`  body ${cut(request.body)}\n  etcd ${cut(etcd)}\n  ours ${cut(ours)}`);
}

process.exitCode = (await run()) ? 0 : 1;
