/**
 * Starts, stops and removes the members of a plan. Nothing here throws for what a user can cause:
 * it says it and returns false.
 */
import { spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { certificateFiles, certificateTrouble, writeCertificates } from "../certs.ts";
import { createHealthProbe } from "./health.ts";
import {
  type ClusterPlan,
  certsDir,
  clientUrl,
  dataDir,
  logFile,
  type MemberPlan,
  memberFlags,
  pidFile,
} from "./layout.ts";
import { commandLineOf, hasEnded, portTrouble } from "./processes.ts";
import { callOf } from "./programs.ts";

/** Where the words for the user go, a line at a time. */
export type Say = (line: string) => void;

const startLimitMs = 60_000;
const stopLimitMs = 30_000;
const pollMs = 100;
const logTailLines = 20;
/** Why a learner is not healthy; etcd's words, too. */
const LEARNER_TEXT = "rpc not supported for learner";

/**
 * The process id of a running member, or undefined. A pid file can outlive its process, and the
 * number can pass to another process: only a process whose command line names the member's
 * data directory is the member.
 */
export function runningPid(plan: ClusterPlan, member: MemberPlan): number | undefined {
  const path = pidFile(plan, member);
  if (!existsSync(path)) return undefined;
  const pid = Number(readFileSync(path, "utf8").trim());
  if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
  return commandLineOf(pid)?.includes(`--data-dir=${dataDir(plan, member)}`) ? pid : undefined;
}

/**
 * Starts those of the members that do not run, and waits until all of them are healthy. True when
 * they are.
 */
export async function startCluster(
  plan: ClusterPlan,
  say: Say,
  members: readonly MemberPlan[] = plan.members,
): Promise<boolean> {
  const missing = members.filter((member) => runningPid(plan, member) === undefined);
  for (const member of members.filter((one) => !missing.includes(one))) {
    say(`${member.name} is running already (pid ${runningPid(plan, member)})`);
  }
  for (const member of missing.filter((one) => existsSync(pidFile(plan, one)))) {
    say(`${member.name}: its pid file is stale, it does not run any more`);
    rmSync(pidFile(plan, member));
  }
  if (!(await portsAreFree(missing, say)) || !(await ensureCertificates(plan, missing, say)))
    return false;
  // Beside members that run, one without data joins their cluster, as after `member add`. For one
  // with data the flag says nothing.
  const runsAny = plan.members.some((member) => runningPid(plan, member) !== undefined);
  for (const member of missing) {
    const pid = spawnMember(plan, member, runsAny ? "existing" : "new");
    say(`starting ${member.name} (pid ${pid}, log ${logFile(plan, member)})`);
  }
  return waitHealthy(plan, say, members);
}

async function portsAreFree(members: readonly MemberPlan[], say: Say): Promise<boolean> {
  let free = true;
  for (const member of members) {
    for (const [port, use] of [
      [member.clientPort, "client"],
      [member.peerPort, "peer"],
    ] as const) {
      const trouble = await portTrouble(port);
      if (trouble === undefined) continue;
      free = false;
      say(`port ${port}, the ${use} port of ${member.name}, ${trouble}`);
    }
  }
  if (!free) say("nothing was started");
  return free;
}

async function ensureCertificates(
  plan: ClusterPlan,
  missing: readonly MemberPlan[],
  say: Say,
): Promise<boolean> {
  const trouble = certificateTrouble(certsDir(plan));
  if (trouble === undefined) return true;
  if (missing.length < plan.members.length) {
    say(
      `${trouble}; new certificates cannot be made while members run on the old ones: run ${callOf("restart")} --at-once`,
    );
    return false;
  }
  say(`making certificates in ${certsDir(plan)} (${trouble})`);
  await writeCertificates(certsDir(plan));
  return true;
}

function spawnMember(plan: ClusterPlan, member: MemberPlan, state: "new" | "existing"): number {
  for (const dir of ["data", "logs", "pids"]) {
    mkdirSync(join(plan.dir, dir), { recursive: true, mode: 0o700 });
    chmodSync(join(plan.dir, dir), 0o700);
  }
  const log = openSync(logFile(plan, member), "a", 0o600);
  const [program, ...first] = plan.command;
  const flags = memberFlags(plan, member, state);
  const env = withoutShadowed(flags);
  const child = spawn(program, [...first, ...flags], {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: plan.dir,
    env,
  });
  closeSync(log);
  child.unref();
  // A program that cannot be started has no pid, and its error event must not end this process.
  child.on("error", () => {});
  const pid = child.pid ?? 0;
  writeFileSync(pidFile(plan, member), `${pid}\n`, { mode: 0o600 });
  return pid;
}

/**
 * The environment without the ETCD_* variables of flags that are given, and of another file: they
 * are for another member.
 */
function withoutShadowed(flags: readonly string[]): NodeJS.ProcessEnv {
  const env = { ...process.env };
  delete env["ETCD_CONFIG_FILE"];
  for (const flag of flags) {
    const name = flag.replace(/^--|=.*$/gs, "");
    delete env[`ETCD_${name.replaceAll("-", "_").toUpperCase()}`];
  }
  return env;
}

async function waitHealthy(
  plan: ClusterPlan,
  say: Say,
  members: readonly MemberPlan[],
): Promise<boolean> {
  const certs = certificateFiles(certsDir(plan));
  const read = (path: string): string => readFileSync(path, "utf8");
  const probe = createHealthProbe({
    ca: read(certs.ca),
    cert: read(certs.client),
    key: read(certs.clientKey),
  });
  const startedMs = performance.now();
  const waiting = new Map(members.map((member) => [member, "not asked yet"]));
  let nextWordMs = 5000;
  try {
    for (;;) {
      for (const member of [...waiting.keys()]) {
        // A process that replaces itself has no command line for a moment.
        if (runningPid(plan, member) === undefined && (await stillGone(plan, member))) {
          reportDeath(plan, member, say);
          return false;
        }
        const trouble = await probe.trouble(clientUrl(member));
        if (trouble === undefined) {
          waiting.delete(member);
          say(
            `${member.name} is healthy after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`,
          );
        } else if (trouble.includes(LEARNER_TEXT)) {
          waiting.delete(member);
          say(`${member.name} runs as a learner; "quoratectl member promote ID" makes it a voter`);
        } else waiting.set(member, trouble);
      }
      if (waiting.size === 0) return true;
      const passedMs = performance.now() - startedMs;
      if (passedMs > nextWordMs) {
        nextWordMs += 5000;
        for (const [member, trouble] of waiting)
          say(`still waiting for ${member.name} (${(passedMs / 1000).toFixed(0)} s): ${trouble}`);
      }
      if (passedMs > startLimitMs) {
        say(`gave up after ${startLimitMs / 1000} s`);
        for (const member of waiting.keys()) sayLogTail(plan, member, say);
        return false;
      }
      await delay(pollMs);
    }
  } finally {
    await probe.close();
  }
}

async function stillGone(plan: ClusterPlan, member: MemberPlan): Promise<boolean> {
  await delay(2 * pollMs);
  return runningPid(plan, member) === undefined;
}

function reportDeath(plan: ClusterPlan, member: MemberPlan, say: Say): void {
  say(`${member.name} died while starting`);
  sayLogTail(plan, member, say);
  const others = plan.members
    .filter((one) => runningPid(plan, one) !== undefined)
    .map((one) => one.name);
  if (others.length > 0) say(`${others.join(" and ")} still running; ${callOf("stop")} stops them`);
}

function sayLogTail(plan: ClusterPlan, member: MemberPlan, say: Say): void {
  const path = logFile(plan, member);
  if (!existsSync(path)) return;
  const lines = readFileSync(path, "utf8").trimEnd().split("\n").slice(-logTailLines);
  say(`--- last lines of ${path}`);
  for (const line of lines) say(line);
  say("---");
}

/**
 * Sends SIGTERM to those of the members that run and waits until they are gone. True when none is
 * left.
 */
export async function stopCluster(
  plan: ClusterPlan,
  say: Say,
  members: readonly MemberPlan[] = plan.members,
): Promise<boolean> {
  const startedMs = performance.now();
  const stopping = new Map<MemberPlan, number>();
  for (const member of members) {
    const pid = runningPid(plan, member);
    if (pid === undefined) {
      rmSync(pidFile(plan, member), { force: true });
      continue;
    }
    process.kill(pid, "SIGTERM");
    stopping.set(member, pid);
  }
  if (stopping.size === 0) say("no member is running");
  while (stopping.size > 0) {
    for (const [member, pid] of [...stopping]) {
      // Its ports are free for the next start only when all of it is gone, or its number has passed
      // to another process.
      const isOther = commandLineOf(pid) !== undefined && runningPid(plan, member) === undefined;
      if (!hasEnded(pid) && !isOther) continue;
      stopping.delete(member);
      rmSync(pidFile(plan, member), { force: true });
      say(
        `${member.name} stopped (pid ${pid}, ${((performance.now() - startedMs) / 1000).toFixed(1)} s)`,
      );
    }
    if (stopping.size > 0 && performance.now() - startedMs > stopLimitMs) {
      for (const [member, pid] of stopping)
        say(`${member.name} (pid ${pid}) did not stop within ${stopLimitMs / 1000} s`);
      return false;
    }
    await delay(stopping.size > 0 ? 50 : 0);
  }
  return true;
}

/** Stops the members and removes what they wrote. True when it is gone. */
export async function cleanCluster(
  plan: ClusterPlan,
  keepCerts: boolean,
  say: Say,
): Promise<boolean> {
  if (!(await stopCluster(plan, say))) return false;
  const doomed = ["data", "logs", "pids", "env", ...(keepCerts ? [] : ["certs"])]
    .map((name) => join(plan.dir, name))
    .filter((path) => existsSync(path));
  for (const path of doomed) {
    rmSync(path, { recursive: true });
    say(`removed ${path}`);
  }
  return true;
}
