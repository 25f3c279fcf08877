/**
 * The tool behind scripts/start-all.sh, stop-all.sh, restart.sh, clean.sh and restore.sh.
 *
 *   node scripts/cluster.ts start | stop | restart | clean [--keep-certs] | restore [SNAPSHOT]
 *
 * QUORATE_EXECUTABLE names another program with etcd's flags to run instead of this repository's, such as /usr/bin/etcd.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { certificateFiles } from "./certs.ts";
import { cleanCluster, runningPid, startCluster, stopCluster } from "./cluster/control.ts";
import { type ClusterPlan, certsDir, clientUrl, localCluster } from "./cluster/layout.ts";
import { commandLineOf } from "./cluster/processes.ts";
import { restoreCluster } from "./cluster/restore.ts";

const root = join(import.meta.dirname, "..");
const say = (line: string): void => console.log(line);

async function main(args: readonly string[]): Promise<boolean> {
  const [command, ...options] = args;
  const executable = process.env["QUORATE_EXECUTABLE"];
  const plan = executable ? localCluster(root, [executable]) : localCluster(root);
  const unknown = options.filter(
    (option, i) => !(command === "clean" && option === "--keep-certs") && !(command === "restore" && i === 0 && !option.startsWith("-")),
  );
  if (unknown.length > 0 || !["start", "stop", "restart", "clean", "restore"].includes(command ?? "")) {
    console.error(`unknown: ${[command, ...unknown].join(" ")}\nuse: start | stop | restart | clean [--keep-certs] | restore [SNAPSHOT]`);
    return false;
  }
  return alone(plan, async () => {
    if (command === "stop") return stopCluster(plan, say);
    if (command === "clean") return cleanCluster(plan, options.includes("--keep-certs"), say);
    if (command === "restore") return restoreCluster(plan, options[0], say);
    if (command === "restart" && !(await stopCluster(plan, say))) return false;
    const wasRunning = plan.members.every((member) => runningPid(plan, member) !== undefined);
    if (!(await startCluster(plan, say))) return false;
    sayHowToUse(plan, wasRunning);
    return true;
  });
}

/** Runs `action` while no other run of this tool is busy with the same directory. */
async function alone(plan: ClusterPlan, action: () => Promise<boolean>): Promise<boolean> {
  mkdirSync(plan.dir, { recursive: true, mode: 0o700 });
  const lock = join(plan.dir, "lock");
  try {
    writeFileSync(lock, `${process.pid}\n`, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const pid = Number(readFileSync(lock, "utf8"));
    if (pid > 1 && commandLineOf(pid)?.includes("cluster.ts")) {
      console.error(`another run is at work (pid ${pid}); try again when it is done`);
      return false;
    }
    writeFileSync(lock, `${process.pid}\n`);
  }
  try {
    return await action();
  } finally {
    rmSync(lock, { force: true });
    if (readdirSync(plan.dir).length === 0) rmdirSync(plan.dir);
  }
}

function sayHowToUse(plan: ClusterPlan, wasRunning: boolean): void {
  const certs = certificateFiles(relative(root, certsDir(plan)));
  const endpoints = plan.members.map(clientUrl).join(",");
  const flags = `--endpoints=${endpoints} --cacert=${certs.ca} --cert=${certs.client} --key=${certs.clientKey}`;
  say("");
  say(wasRunning ? "The cluster was running already; nothing was changed. Endpoints:" : "The cluster is up. Endpoints:");
  for (const member of plan.members) say(`  ${member.name}  ${clientUrl(member)}`);
  say("");
  say(`Try it, in ${root}:`);
  for (const program of ["npx quoratectl", "ETCDCTL_API=3 etcdctl"]) {
    say("");
    say(`  ${program} ${flags} put greeting hello`);
    say(`  ${program} ${flags} get greeting`);
  }
  say("");
  say("scripts/stop-all.sh stops it, scripts/clean.sh removes its data.");
}

// A reader that closes early, such as head, must not stop the work half way.
process.stdout.on("error", () => {});
process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
