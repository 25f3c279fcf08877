/** The programs under test: our member, and etcd and etcdctl where they are installed. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
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

const etcdPath = findProgram("etcd");

/** This repository's member. */
export const quorate: Executable = {
  name: "quorate",
  command: [process.execPath, join(import.meta.dirname, "../../bin/quorate.js")],
};

/** The original, if it is installed. */
export const etcd: Executable | undefined =
  etcdPath === undefined ? undefined : { name: "etcd", command: [etcdPath] };

/** For a test's `skip` option: false if the original is installed, else why the test cannot run. */
export const skipWithoutEtcd: string | false =
  etcd === undefined ? "etcd is not installed (Debian: apt-get install etcd-server)" : false;

/** For a test's `skip` option: false if etcdctl is installed, else why the test cannot run. */
export const skipWithoutEtcdctl: string | false =
  findProgram("etcdctl") === undefined
    ? "etcdctl is not installed (Debian: apt-get install etcd-client)"
    : false;

/** This repository's member as a release has it where ./dev test has bundled it, else `quorate`. */
const ours: Executable = { name: "quorate", command: bundledProgram("quorate") ?? quorate.command };

/**
 * The member that the end-to-end tests run: ours, or the original with QUORATE_TEST_MEMBER=etcd,
 * which shows whether the test or the member is wrong.
 */
export const memberUnderTest: Executable =
  process.env["QUORATE_TEST_MEMBER"] === "etcd" && etcd !== undefined ? etcd : ours;
