/** The command `./dev compare audit`: kube-apiserver's audit log beside ours. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import { comparisonOptions, keepAnswers } from "../comparison.ts";
import { withKubeApiserver } from "../kube-process.ts";
import { auditOptions, keptEvents } from "./kept.ts";
import { type Event, eventsOf } from "./play.ts";
import { auditedRequests, POLICY, TOKENS } from "./requests.ts";

const HELP = `./dev compare audit [OPTIONS]

Sends requests to a new API server of ours, and compares the lines of its audit log with those of
kube-apiserver 1.36.`;

const { values } = readArguments(HELP, comparisonOptions("events"));

function kubeEvents(etcd: string): Promise<readonly Event[][]> {
  const logOf = (dir: string): string => join(dir, "kube-audit.log");
  return withKubeApiserver(
    etcd,
    (access, dir) => eventsOf(access, logOf(dir)),
    (dir) => {
      writeFileSync(join(dir, "tokens.csv"), TOKENS);
      writeFileSync(join(dir, "policy.yaml"), POLICY);
      return [`--audit-policy-file=${join(dir, "policy.yaml")}`, `--audit-log-path=${logOf(dir)}`];
    },
  );
}

async function run(): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), "compare-audit-"));
  try {
    const theirs = values.etcd === undefined ? keptEvents() : await kubeEvents(values.etcd);
    if (values.record) keepAnswers(import.meta.dirname, theirs);
    await using api = await startApiServer(auditOptions(dir));
    const headers = { authorization: "Bearer admin-token" };
    const ours = await eventsOf({ url: api.url, headers }, join(dir, "audit.log"));
    let differences = 0;
    for (const [at, { method, path }] of auditedRequests.entries()) {
      if (isDeepStrictEqual(ours[at], theirs[at])) continue;
      differences++;
      console.log(`\n${at} ${method} ${path}`);
      console.log(`  kube: ${JSON.stringify(theirs[at])}\n  ours: ${JSON.stringify(ours[at])}`);
    }
    console.log(`\n${ours.length} requests, ${differences} differences`);
    return differences === 0;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

process.exitCode = (await run()) ? 0 : 1;
