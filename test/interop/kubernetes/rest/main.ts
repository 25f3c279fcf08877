/** The command `npm run compare:kube-api`: kube-apiserver's responses beside ours. */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { differencesOf, responsesOf } from "./compare.ts";
import { accessOf } from "./exchange.ts";
import { keptPath, keptResponses } from "./kept.ts";
import { randomised, steps } from "./requests.ts";

const HELP = `usage: npm run compare:kube-api -- [options]

Sends about 200 requests to a new API server of ours, and compares statuses, warnings and bodies
with those of kube-apiserver 1.36.

  --kubeconfig FILE  send them to a new kube-apiserver too (default: its stored responses count)
  --random SEED      random requests instead, to both servers (needs --kubeconfig)
  --count N          how many of them (default 2000)
  --record           store kube-apiserver's responses for the test of the build
  --only TEXT        print only differences whose request contains TEXT
  --help             print this text
`;
const MAX_SHOWN_CHARS = 3000;

async function run(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      kubeconfig: { type: "string" },
      random: { type: "string" },
      count: { type: "string", default: "2000" },
      record: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return true;
  }
  const { random } = values;
  const all = random === undefined ? steps() : randomised(Number(random), Number(values.count));
  let theirs = values.record ? [] : keptResponses();
  if (values.kubeconfig !== undefined) {
    const access = accessOf(readFileSync(values.kubeconfig, "utf8"));
    theirs = (await responsesOf(access, all)).map(({ response }) => response);
  }
  if (values.record) {
    writeFileSync(keptPath, `${theirs.map((one) => JSON.stringify(one)).join("\n")}\n`);
    console.log(`${theirs.length} responses stored`);
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
