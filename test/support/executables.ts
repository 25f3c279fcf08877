/** The programs under test: our member, and etcd and etcdctl where they are installed. */
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { bundledProgram } from "./bundled.ts";

/** A member program. It takes etcd's flags after `command`. */
export interface Executable {
  readonly name: "quorate" | "etcd";
  readonly command: readonly string[];
}

/** The path of a program on PATH, or undefined. */
export function findProgram(name: string): string | undefined {
  for (const dir of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(dir, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this directory.
    }
  }
  return undefined;
}

/**
 * For a test's `skip` option: false if the program is on PATH, else why the test cannot run.
 * @param from where it can be had
 */
export function skipWithout(program: string, from?: string): string | false {
  const hint = from === undefined ? "" : ` (${from})`;
  return findProgram(program) === undefined ? `${program} is not installed${hint}` : false;
}

const etcdPath = findProgram("etcd");

/** This repository's member. */
export const quorate: Executable = {
  name: "quorate",
  command: [process.execPath, join(import.meta.dirname, "../../bin/quorate.js")],
};

/** The original, if it is installed. */
export const etcd: Executable | undefined =
  etcdPath === undefined ? undefined : { name: "etcd", command: [etcdPath] };

const newestPath = process.env["QUORATE_TEST_ETCD_NEWEST"] ?? "";

/** The newest etcd, where QUORATE_TEST_ETCD_NEWEST has its path: Debian's is an old one. */
export const etcdNewest: Executable | undefined =
  newestPath === "" ? undefined : { name: "etcd", command: [newestPath] };

/** Another release of etcd, such as "3.5", where it is on PATH as etcd-3.5 or beside the newest. */
export function etcdOf(release: string): Executable | undefined {
  const beside = join(dirname(newestPath), `etcd-${release}`);
  const path = newestPath !== "" && existsSync(beside) ? beside : findProgram(`etcd-${release}`);
  return path === undefined ? undefined : { name: "etcd", command: [path] };
}

export const skipWithoutEtcdNewest: string | false =
  etcdNewest === undefined && "QUORATE_TEST_ETCD_NEWEST has no path of etcd 3.7";
export const skipWithoutEtcd = skipWithout("etcd", "Debian: apt-get install etcd-server");
export const skipWithoutEtcdctl = skipWithout("etcdctl", "Debian: apt-get install etcd-client");

/** This repository's member as a release has it where ./dev test has bundled it, else `quorate`. */
const ours: Executable = { name: "quorate", command: bundledProgram("quorate") ?? quorate.command };

/**
 * The member that the end-to-end tests run: ours, or the original with QUORATE_TEST_MEMBER=etcd,
 * which shows whether the test or the member is wrong.
 */
export const memberUnderTest: Executable =
  process.env["QUORATE_TEST_MEMBER"] === "etcd" && etcd !== undefined ? etcd : ours;
