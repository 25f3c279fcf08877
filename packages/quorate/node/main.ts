/**
 * The program `quorate`: runs a member, or what the first argument names. Removing a line here and
 * the package that it loads removes that program.
 */
import type { Program } from "@quorate/cli";
import { main as runMember } from "@quorate/server/node";
import { PARENT_VARIABLE } from "./envtest.ts";

/** Files are for the process's own user. */
const PRIVATE_UMASK = 0o077;

const proxies = async () => (await import("./commands.ts")).proxyProgram;

/** Programs by command. Each is loaded when it is asked for: a member needs none of them. */
const PROGRAMS: Readonly<Record<string, () => Promise<Program>>> = {
  gateway: proxies,
  "grpc-proxy": proxies,
  shadow: async () => (await import("@quorate/shadow/node")).shadowProgram,
  envtest: proxies,
  operator: async () => (await import("@quorate/operator/node")).operatorProgram,
  apiserver: async () => (await import("@quorate/kube-apiserver/node")).loadApiServerProgram(),
};

/** Runs the program with this process's arguments. Called once, by bin/launch.js. */
export async function main(): Promise<void> {
  endWithParent(process.env);
  const args = process.argv.slice(2);
  const [name = ""] = args;
  const load = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
  if (load === undefined) return runMember();
  process.umask(PRIVATE_UMASK);
  const [{ processIo, runProgram }, program] = await Promise.all([import("@quorate/cli"), load()]);
  process.exitCode = await runProgram(program, args, processIo);
}

const LOOK_MS = 250;
/** So many looks after SIGTERM it ends at once. */
const GRACE_LOOKS = 12;

/**
 * Ends this process when the one that the environment names is its parent no more: a process of a
 * test ends with the test, however that ends. The parent's death is seen by the parent's number, as
 * its standard input is not the parent's.
 */
function endWithParent(env: NodeJS.ProcessEnv): void {
  const parent = Number(env[PARENT_VARIABLE]);
  delete env[PARENT_VARIABLE];
  if (!Number.isInteger(parent) || parent <= 1) return;
  let looks = 0;
  setInterval(() => {
    if (process.ppid === parent) return;
    if (looks++ === 0) process.kill(process.pid, "SIGTERM");
    else if (looks > GRACE_LOOKS) process.kill(process.pid, "SIGKILL");
  }, LOOK_MS).unref();
}
