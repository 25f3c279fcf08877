/**
 * Where Patroni, PostgreSQL and clients in Python are: the virtual environment that
 * scripts/test-clients.sh makes, and Debian's PostgreSQL.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const POSTGRES_VERSIONS = "/usr/lib/postgresql";
const isRoot = process.getuid?.() === 0;

/** The virtual environment; scripts/test-clients.sh has the same places. */
const environment =
  process.env["QUORATE_TEST_CLIENTS"] ??
  (isRoot ? "/usr/local/lib/quorate-test-clients" : join(homedir(), ".cache/quorate-test-clients"));

/** The Python of the environment; it may not be there. */
export const PYTHON = join(environment, "bin/python");
export const PATRONI = join(environment, "bin/patroni");

/** Whether the environment's Python can import these modules. */
function canImport(...modules: string[]): boolean {
  try {
    execFileSync(PYTHON, ["-c", modules.map((name) => `import ${name}`).join("\n")], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
}

/** PostgreSQL's programs, of the newest version; undefined if it is not installed. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(POSTGRES_VERSIONS)) return undefined;
  return readdirSync(POSTGRES_VERSIONS)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(POSTGRES_VERSIONS, version, "bin"))
    .find((bin) => existsSync(join(bin, "postgres")));
}

/** The first process of a node: it forwards SIGTERM, and collects orphans as any first process. */
const FIRST_PROCESS = 'trap "kill -TERM \\$child" TERM; "$@" & child=$!; wait $child; wait $child';

/**
 * What stands before a command so that it dies as a machine does: in a process namespace, of which
 * the kernel kills everything with its first process; and not as root, since PostgreSQL refuses
 * that.
 */
export const asMachine: readonly string[] = [
  "unshare",
  ...(isRoot ? [] : ["--user", "--map-current-user"]),
  "--pid",
  "--fork",
  "--kill-child",
  "--mount-proc",
  "sh",
  "-c",
  FIRST_PROCESS,
  "node",
  ...(isRoot ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []),
];

/** Who runs PostgreSQL: the owner that its directories must have; undefined for this user. */
export const postgresOwner = isRoot ? "postgres:postgres" : undefined;

/** For a test's `skip` option: false, or what is missing. */
export function skipWithoutPatroni(): string | false {
  if (!canImport("patroni.dcs.etcd3", "psycopg"))
    return "Patroni is not installed (scripts/test-clients.sh installs it from PyPI)";
  if (postgresPrograms() === undefined)
    return "PostgreSQL is not installed (Debian: apt-get install postgresql)";
  try {
    execFileSync(asMachine[0], [...asMachine.slice(1), "true"], { stdio: "ignore" });
    return false;
  } catch {
    return "this machine lets no process have a namespace of its own (unshare)";
  }
}

/** For a test's `skip` option: false, or what is missing. */
export function skipWithoutEtcd3gw(): string | false {
  return canImport("etcd3gw")
    ? false
    : "the client etcd3gw for Python is not installed (scripts/test-clients.sh installs it)";
}
