/** The command `./dev compare limits`: LimitRanges, beside kube-apiserver. */
import { writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { accessOf } from "../rest/exchange.ts";
import { keptAnswers, keptPath, play } from "./play.ts";

const HELP = `./dev compare limits [OPTIONS]

Creates LimitRanges, pods and claims on a new API server of ours, and compares what is set and what
is refused with kube-apiserver 1.36.`;

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    etcd: {
      type: "string",
      requiresArg: true,
      describe:
        "an empty etcd: kube-apiserver (on PATH) is started on it, and compared with (default: its stored answers count)",
    },
    record: {
      type: "boolean",
      default: false,
      describe: "store kube-apiserver's answers for the test of the build",
    },
  });
  const { etcd } = values;
  const theirs = etcd === undefined ? keptAnswers() : await withKubeApiserver(etcd, play);
  if (values.record)
    writeFileSync(keptPath, `${theirs.map((one) => JSON.stringify(one)).join("\n")}\n`);
  await using api = await startApiServer();
  const ours = await play(accessOf(api.kubeconfig));
  let differences = 0;
  for (const [i, { request, response }] of ours.entries()) {
    const other = theirs[i]?.response;
    if (isDeepStrictEqual(JSON.parse(JSON.stringify(response)), JSON.parse(JSON.stringify(other))))
      continue;
    differences++;
    console.log(`\n${request}`);
    console.log(`  kube: ${JSON.stringify(other)}`);
    console.log(`  ours: ${JSON.stringify(response)}`);
  }
  console.log(`\n${theirs.length} answers, ${differences} differences`);
  return differences === 0;
}

process.exitCode = (await run()) ? 0 : 1;
