/**
 * The tool behind scripts/start-all.sh, stop-all.sh, restart.sh, status.sh, clean.sh and
 * restore.sh, and quorate-cluster of a release: three members on this machine, infra0 to infra2,
 * with mutual TLS.
 *
 * QUORATE_EXECUTABLE names another program with etcd's flags to run instead of our own, such as
 * /usr/bin/etcd.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { clientEnvFile, quoted, writeClientEnv } from "./cluster/client-env.ts";
import { cleanCluster, runningPid, startCluster, stopCluster } from "./cluster/control.ts";
import { type ClusterPlan, clientUrl, localCluster } from "./cluster/layout.ts";
import { commandLineOf } from "./cluster/processes.ts";
import { callOf, commandOf, defaultDir, isReleased } from "./cluster/programs.ts";
import { restoreCluster } from "./cluster/restore.ts";
import { restartRolling } from "./cluster/rolling.ts";
import { clusterStatus } from "./cluster/status.ts";
import { systemTrouble } from "./cluster/trouble.ts";

const NAME = isReleased ? "quorate-cluster" : "node scripts/cluster.ts";

const HELP = `usage: ${NAME} start | stop | restart | status | clean | restore [SNAPSHOT] [OPTIONS]

Runs three members on this machine, infra0 to infra2, with mutual TLS, on the ports 3379, 4379 and
5379 of 127.0.0.1.

  start      starts the members that do not run; creates certificates if there are none
  stop       stops all members
  restart    restarts the members one after the other, the leader last: a majority runs all the time
  status     prints process, role, health, size and version of each; exit code 0 if all are healthy
  clean      stops all members and deletes data, logs and certificates
  restore    saves a snapshot (or uses SNAPSHOT), deletes all data, and restores every member from it

  --dir DIRECTORY    directory of the cluster's files (default: ${defaultDir})
  --keep-certs       clean: do not delete the certificates
  --rolling          restart: one after the other, as by default
  --at-once          restart: stop all members, then start them
  --help             print this text
`;

const say = (line: string): void => console.log(line);

interface Options {
  readonly command: string;
  readonly file: string | undefined;
  readonly dir: string;
  readonly keepCerts: boolean;
  readonly atOnce: boolean;
}

/** Undefined if help was asked for. Throws an Error that says what is wrong. */
function readOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      dir: { type: "string", default: defaultDir },
      "keep-certs": { type: "boolean", default: false },
      rolling: { type: "boolean", default: false },
      "at-once": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return undefined;
  const [command, file] = positionals;
  const most = command === "restore" ? 2 : 1;
  const keepCerts = values["keep-certs"];
  if (
    !["start", "stop", "restart", "status", "clean", "restore"].includes(command ?? "") ||
    positionals.length > most
  ) {
    throw new Error(`unknown: ${positionals.join(" ") || "no command"}`);
  }
  if (keepCerts && command !== "clean")
    throw new Error("unknown: --keep-certs, which is for clean");
  const atOnce = values["at-once"];
  if ((atOnce || values.rolling) && command !== "restart")
    throw new Error(`unknown: ${atOnce ? "--at-once" : "--rolling"}, which is for restart`);
  if (atOnce && values.rolling) throw new Error("--rolling and --at-once exclude each other");
  return { command: command, file, dir: resolve(values.dir), keepCerts, atOnce };
}

async function main(args: readonly string[]): Promise<boolean> {
  let options: Options | undefined;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n--help prints the usage`);
    return false;
  }
  if (options === undefined) {
    process.stdout.write(HELP);
    return true;
  }
  const { command, dir } = options;
  const executable = process.env["QUORATE_EXECUTABLE"];
  const plan = executable ? localCluster(dir, [executable]) : localCluster(dir);
  try {
    // Changes nothing, so it may look while another run is at work.
    if (command === "status") return await clusterStatus(plan, say, Date.now());
    return await alone(plan, () => run(plan, options));
  } catch (error) {
    const trouble = systemTrouble(error, dir);
    if (trouble === undefined) throw error;
    console.error(trouble);
    return false;
  }
}

async function run(
  plan: ClusterPlan,
  { command, file, keepCerts, atOnce }: Options,
): Promise<boolean> {
  if (command === "stop") return stopCluster(plan, say);
  if (command === "clean") return cleanCluster(plan, keepCerts, say);
  if (command === "restore") return restoreCluster(plan, file, say);
  const runsAny = plan.members.some((member) => runningPid(plan, member) !== undefined);
  if (command === "restart" && !atOnce && runsAny) return restartRolling(plan, say);
  if (command === "restart" && !(await stopCluster(plan, say))) return false;
  const wasRunning = plan.members.every((member) => runningPid(plan, member) !== undefined);
  if (!(await startCluster(plan, say))) return false;
  writeClientEnv(plan);
  sayHowToUse(plan, wasRunning);
  return true;
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
    if (pid > 1 && /\bcluster\.(?:ts|mjs)\b/.test(commandLineOf(pid) ?? "")) {
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
  const near = relative(process.cwd(), clientEnvFile(plan));
  const env = isReleased || near.startsWith("..") ? clientEnvFile(plan) : near;
  say("");
  say(
    wasRunning
      ? "The cluster was running already; nothing was changed. Endpoints:"
      : "The cluster is up. Endpoints:",
  );
  for (const member of plan.members) say(`  ${member.name}  ${clientUrl(member)}`);
  say("");
  say(isReleased ? "Try it:" : `Try it, in ${process.cwd()}:`);
  say("");
  say(`  . ${quoted(env)}    # endpoints and certificates, for etcdctl too`);
  const program = isReleased ? commandOf("quoratectl")[0] : "npx quoratectl";
  say(`  ${program} put greeting hello`);
  say(`  ${program} get greeting`);
  say("");
  const where = plan.dir === defaultDir ? "" : ` --dir ${quoted(plan.dir)}`;
  say(
    `${callOf("status")}${where} shows how it stands, ${callOf("stop")}${where} stops it, ${callOf("clean")}${where} removes its data.`,
  );
}

// A reader that closes early, such as head, must not stop the work half way.
process.stdout.on("error", () => {});
process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
