/** The command `./dev compare aggregation`: other API servers, beside kube-apiserver. */
import { isDeepStrictEqual } from "node:util";
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { keepAnswers, keptAnswers, play, withOurs } from "./play.ts";

const HELP = `./dev compare aggregation [OPTIONS]

Creates APIServices of another server on a new API server of ours, sends requests that go on to it,
and compares the answers with those of kube-apiserver 1.36.`;

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
  if (values.record) keepAnswers(theirs);
  const ours = await withOurs(play);
  let differences = 0;
  for (const [i, { request, response }] of ours.entries()) {
    if (isDeepStrictEqual(response, theirs[i]?.response)) continue;
    differences++;
    console.log(`\n${request.slice(0, 600)}`);
    console.log(`  kube: ${JSON.stringify(theirs[i]?.response)}`);
    console.log(`  ours: ${JSON.stringify(response)}`);
  }
  console.log(`\n${theirs.length} answers, ${differences} differences`);
  return differences === 0;
}

process.exitCode = (await run()) ? 0 : 1;
