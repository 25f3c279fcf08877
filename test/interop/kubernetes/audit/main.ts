/** The command `npm run compare:audit`: kube-apiserver's audit log beside ours. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { startApiServer } from "@quorate/apiserver/node";
import { kubeApiFlags, writeKubeApiFiles } from "../../../support/kube-apiserver.ts";
import { exchange } from "../rest/exchange.ts";
import { auditOptions, keptEvents, keptPath } from "./kept.ts";
import { type Event, eventsOf } from "./play.ts";
import { auditedRequests, POLICY, TOKENS } from "./requests.ts";

const HELP = `usage: npm run compare:audit -- [options]

Sends requests to a new API server of ours, and compares the lines of its audit log with those of
kube-apiserver 1.36.

  --etcd URL  an empty etcd: kube-apiserver (on PATH) is started on it, and compared with
              (default: its stored events count)
  --record    store kube-apiserver's events for the test of the build
  --help      print this text
`;
const START_LIMIT_MS = 120_000;

const { values } = parseArgs({
  options: {
    etcd: { type: "string" },
    record: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

async function kubeEvents(etcd: string, dir: string): Promise<readonly Event[][]> {
  writeKubeApiFiles(dir, "admin", "admin-token");
  writeFileSync(join(dir, "tokens.csv"), TOKENS);
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const log = join(dir, "kube-audit.log");
  const audit = [`--audit-policy-file=${join(dir, "policy.yaml")}`, `--audit-log-path=${log}`];
  const flags = [...kubeApiFlags(dir, etcd, port), "--advertise-address=127.0.0.1", ...audit];
  const child = spawn("kube-apiserver", flags);
  const headers = { authorization: "Bearer admin-token" };
  const access = { url: `https://127.0.0.1:${port}`, headers };
  try {
    const endMs = performance.now() + START_LIMIT_MS;
    for (;;) {
      const ready = await exchange(access, { method: "GET", path: "/readyz" }).catch(
        () => undefined,
      );
      if (ready?.status === 200) break;
      if (performance.now() > endMs || child.exitCode !== null) throw new Error("not ready");
      await delay(300);
    }
    return await eventsOf(access, log);
  } finally {
    child.kill("SIGKILL");
  }
}

async function run(): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), "compare-audit-"));
  try {
    writeFileSync(join(dir, "policy.yaml"), POLICY);
    const theirs = values.etcd === undefined ? keptEvents() : await kubeEvents(values.etcd, dir);
    if (values.record)
      writeFileSync(keptPath, `${theirs.map((one) => JSON.stringify(one)).join("\n")}\n`);
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

if (values.help) process.stdout.write(HELP);
else process.exitCode = (await run()) ? 0 : 1;
